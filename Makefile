# make            what there is
# make demo       set everything up and reproduce all recipes at demo scale: half an hour to 45 minutes on 2 cores
# make demo-all   every run, the cross-check of the frameworks and the run that collapses among them: over an hour
# make test       set everything up and run all checks and tests
# make test-slurm tests of the cluster part with real Slurm daemons, the long ones too (docs/cluster.md): half an hour
# make lint       formatting, types, and Snakemake's own lint; part of make test

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BASE = $(shell $(PYTHON) envs/build.py base --where)
RUN = PATH="$(CURDIR)/$(dir $(BASE)):$$PATH"

.PHONY: help base demo demo-all test test-slurm lint bench locks

help:
	@grep '^# make' Makefile | cut -c3-

base:
	@$(PYTHON) envs/build.py base

demo: base
	@$(RUN) snakemake --quiet rules -- reproduce_all
	@echo "report: $(CURDIR)/results/demo/report/all/index.html"

demo-all: base
	@$(RUN) snakemake reproduce_all --quiet rules --config reproduce=all
	@echo "report: $(CURDIR)/results/demo/report/all/index.html"

test: lint
	@$(PYTHON) envs/build.py trl verl openrlhf eval
	@$(RUN) python -m pytest $(PYTEST)

test-slurm: base
	@$(PYTHON) envs/build.py trl verl openrlhf eval
	@$(RUN) python -m pytest tests/slurm -m "slurm or slurm_long" $(PYTEST)

lint: base
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy
	@$(RUN) snakefmt --check Snakefile workflows
	@$(RUN) snakemake --lint

bench: base
	@$(PYTHON) envs/build.py trl eval
	@$(RUN) python -m pytest tests/performance --benchmark-only

locks: base
	@$(PYTHON) envs/lock.py
