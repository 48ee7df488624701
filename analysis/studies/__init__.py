"""Studies that need no training: `snakemake study_<name>`."""
