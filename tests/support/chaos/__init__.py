"""Jobs between real servers while everything round them fails: ``python -m chaos --help``.

A run is drawn from its seed (`plans`): a source, sinks, and faults at certain rows. A producer feeds numbered rows
(`rows`) to a server (`systems`) while the job runs in a process of its own (`chaos_job`, `flows`) and the faults happen
(`faults`). At the end all rows are judged (`judge`).
"""
