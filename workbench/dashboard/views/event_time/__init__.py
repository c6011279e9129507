"""Event time: watermarks, what holds them back, late records.

Belongs here: the views of event time.
Does not: other views.
"""
