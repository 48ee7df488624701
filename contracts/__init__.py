"""What passes between the stages: run files, tables, provenance, and errors that a user can mend."""
