"""Slurm: resources of jobs, preflight checks, retries, and what runs will use and have used."""
