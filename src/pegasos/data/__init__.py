"""Data: the one door for arrays, and the readers of files."""
