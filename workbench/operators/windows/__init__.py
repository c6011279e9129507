"""The window operator and its variants.

Belongs here: assigning records to windows, firing, and the contents of windows.
Does not: the window types (``windows``) and window joins.
"""
