"""Where event times and watermarks come from.

Belongs here: watermark generators and timestamp assignment.
Does not: windows and timers, which use event time.
"""
