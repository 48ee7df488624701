"""Training through the frameworks' own trainers: a folder for each framework, and beside them what all share."""
