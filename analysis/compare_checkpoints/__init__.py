"""Compare a checkpoint with a baseline: `snakemake check`."""
