"""The engine: open verbs, compiled hot loops, rows, random numbers, threads."""
