"""What passes between the stages: run files, tables, provenance, paths of results, and errors that a user can fix."""
