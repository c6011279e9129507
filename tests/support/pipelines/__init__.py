"""Pipelines drawn from a seed, and what must come out of them.

``generator`` draws a pipeline: operator by operator it is built twice, with the public API and as a table in DuckDB
(or, where SQL cannot say it, by a plain loop in Python). ``running`` runs it in a random order of steps, with crashes,
kills, restarts, tuning and rescaling; ``expected`` compares. The other modules hold the kinds of operators. Nothing
here shares code with the engine.
"""
