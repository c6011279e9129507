"""Dashboards on display.

Belongs here: the whole view, displays in notebooks, served pages, reports and playback.
Does not: single views.
"""
