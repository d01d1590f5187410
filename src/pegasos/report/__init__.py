"""Reports: what a run has found, drawn for people."""
