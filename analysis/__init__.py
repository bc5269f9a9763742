"""Measures, agreement with the reference, and figures."""
