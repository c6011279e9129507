"""Everything that is sent to the browser.

Belongs here: the page's scripts and assets, and the transport of messages in both directions.
Does not: the content of views.
"""
