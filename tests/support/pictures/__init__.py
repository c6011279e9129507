"""Makes the pictures of the documentation anew, in a real browser, from real jobs: ``make pictures``.

A picture is taken when what it is about is to be seen, not after some time, and is written with a palette, which a
screen of few colours does not miss.
"""
