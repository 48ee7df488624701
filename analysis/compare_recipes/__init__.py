"""Compare two recipes over their training seeds: `snakemake compare_recipes`."""
