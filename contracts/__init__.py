"""What passes between stages: run files, tables, paths, provenance. And what every stage needs: errors, locks."""
