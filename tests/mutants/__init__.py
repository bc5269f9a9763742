"""Deliberate faults, one at a time, in the code: a test has to notice each (``make mutants``)."""
