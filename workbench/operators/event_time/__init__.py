"""The origin of event times and watermarks.

Belongs here: watermark generators and timestamp assignment.
Does not: windows and timers, which use event time.
"""
