"""Patterns of rows: the language, and its translation to an automaton.

There are two ways to write a pattern: as text, ``A B+ C?`` (SQL's ``MATCH_RECOGNIZE``), and as a chain of stages,
``wb.pattern("A", ...).next("B")`` (Flink's CEP). Both become one `Automaton`, whose flat arrays a kernel steps.

Belongs here: patterns as data, their syntax, automata, and expressions that refer to the rows of a match.
Does not: buffers, time and state (``operators/matching``).
"""
