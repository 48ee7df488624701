"""What passes between stages: run files, tables, paths, provenance. And what each stage runs with: errors, locks, statuses."""
