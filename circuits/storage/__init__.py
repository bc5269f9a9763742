"""Files: results, circuits, and how they are written and read."""
