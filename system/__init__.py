"""Plumbing that knows nothing of training or evaluation: errors, files, locks, processes, safe text."""
