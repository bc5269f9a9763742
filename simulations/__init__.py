"""Data sets, experiments, results on disk, and the command line."""
