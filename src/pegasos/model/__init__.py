"""Models as files: our own format, LIBLINEAR text, checkpoints of a run."""
