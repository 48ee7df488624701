"""A Slurm cluster: what jobs ask of it, what is wrong with it before they do, what a run costs and what it has cost."""
