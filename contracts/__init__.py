"""What passes between stages: run files, tables, paths, provenance. And what all need: errors, locks, processes."""
