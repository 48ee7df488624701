"""What passes between stages: run files, tables, paths, checkpoints, seeds, and the record of how each was made."""
