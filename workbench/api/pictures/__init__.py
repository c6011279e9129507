"""Jobs and plans as pictures and text.

Belongs here: scenes, plan views and status lines.
Does not: the dashboard.
"""
