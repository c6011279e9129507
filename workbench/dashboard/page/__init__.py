"""What crosses to the browser.

Belongs here: the page's script and assets, and what carries messages to it and back.
Does not: what is shown.
"""
