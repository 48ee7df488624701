"""Compare a checkpoint with a baseline: `snakemake compare_checkpoints`."""
