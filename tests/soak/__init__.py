"""What was tried to break it, how often, and what was lost: ``python -m tests.soak``.

Every trial is a function of how often it is made, so that the tests make a few and the program
makes many.
"""
