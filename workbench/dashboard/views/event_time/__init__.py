"""The views of event time: watermarks, what holds them back, late records, and event time against processing time.

Belongs here: everything that draws event times.
Does not: sampling them (``telemetry/event_time``).
"""
