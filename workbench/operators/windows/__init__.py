"""The window operator and its variants.

Belongs here: assigning records to windows, firing, and the contents of windows.
Does not: which windows there are (``windows``) and window joins.
"""
