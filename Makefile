# make            this list
# make demo       build the environments and reproduce four recipes at demo scale: 10 to 25 minutes on 2 idle cores
# make demo-all   every run, those of the other documents too: hours
# make small      a pretrained model of 135 million weights through each framework, on a CPU: hours on 2 cores
# make test       build the environments and run all checks and tests: 12 minutes on 2 idle cores; ONLY=grading: those of a folder; TEST_SEED=7: another order
# make test-quick the tests of code that take no quarter of a second each, without the frameworks
# make test-long  what make test leaves out since it takes long to prove: trainings killed and resumed, tutorials
# make test-all   both, with all costly cases, 20 times the examples; without the hours of make test-faults
# make test-setup install the Debian packages that tests need: Slurm, Chromium, bubblewrap, strace
# make test-slurm the tests with real Slurm daemons, the long ones included (docs/how-to/slurm.md): half an hour
# make test-faults kills, full disks, damaged files, searched rewards and more, against the real workflow (docs/explanation/promises.md): two hours
# make test-docs  every command of README and docs that this machine can run: hours; PART=2/7 or DOCS="--cost seconds" for some
# make docs       the documentation's site, in work/docs/site; without network, and a broken link is an error
# make lint       formatting, types and Snakemake's lint; part of make test
# make bench      performance tests; own speed beside bare ways, by commit in results/reference/own_speed.csv: an hour, on an idle machine
# make rehearse what of the GPU environments can be tried without a GPU: 40 GB, flash-attn compiles for hours (docs/how-to/first-gpu.md)
# make test-smoke the rows of make gpu-smoke on the CPU: minutes
# make gpu-smoke whether the full-scale path runs on this GPU: 15 minutes, after the same environments (docs/how-to/first-gpu.md)
# make audit      known weaknesses of the locked packages (needs a network)
# make locks      resolve envs/*/*.in into the pinned locks

PYTHON ?= $(shell command -v python3.11 > /dev/null && echo python3.11 || echo python3)
FRAMEWORKS = $(notdir $(patsubst %/adapter.py,%,$(wildcard frameworks/*/adapter.py)))
BASE = $(shell $(PYTHON) envs/build.py base --where)
# The shell's $PWD, unlike make's, is not read as shell code.
RUN = PATH="$$PWD/$(dir $(BASE)):$$PATH"

# Packages are compiled when they are first imported: vLLM's import takes three times as long where that is not kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help base demo demo-all small test test-quick test-long test-all test-setup test-slurm test-faults test-smoke test-docs docs lint bench rehearse gpu-smoke audit locks

help:
	@grep '^# make' Makefile | cut -c3-

base:
	@$(PYTHON) envs/build.py base

# One recipe's report first, so that there is something to look at while the others train; beside it the one with the most
# stages, which would be last otherwise.
demo: base
	@$(RUN) CROSSZERO_COMMAND="make $@" snakemake --quiet rules --scheduler greedy \
	    --prioritize reproduce_openr1 results/demo/runs/logicrl/qwen2.5-7b/seed-0/scores.parquet \
	    -- reproduce_openr1 reproduce_all

demo-all: base
	@$(RUN) CROSSZERO_COMMAND="make $@" snakemake reproduce_all --quiet rules --config reproduce=all

small: base
	@$(RUN) CROSSZERO_COMMAND="make $@" snakemake reproduce_all --quiet rules --config scale=small

# A test file runs in one process, since its tests share what they made; slow files come first. Slurm's tests wait for most
# of their time, and others for one process or another, so there are three processes more than cores where each has 4 GB.
WORKERS = $(shell $(PYTHON) -c "import os; cores = len(os.sched_getaffinity(0)); \
    memory_gb = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') >> 30; \
    print(min(cores + 3, max(cores, memory_gb // 4), 5))")
SIDE_BY_SIDE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

SOME = $(if $(ONLY),--only=$(ONLY)) $(PYTEST)

test: base
	@$(PYTHON) envs/build.py --all
	@$(RUN) python -m pytest $(SIDE_BY_SIDE) $(SOME)

test-quick: base
	@TEST_EXAMPLES=quick $(RUN) python -m pytest tests/unit -n auto --dist loadfile --no-loadscope-reorder -m "not slow and not long" $(SOME)

test-long: base
	@$(PYTHON) envs/build.py --all
	@$(RUN) python -m pytest $(SIDE_BY_SIDE) -m "long and not faults_long" $(SOME)

test-all: base
	@$(PYTHON) envs/build.py --all
	@TEST_EXAMPLES=all $(RUN) python -m pytest $(SIDE_BY_SIDE) -m "not faults_long" $(SOME)

DEBIAN = slurmctld slurmd slurm-client munge chromium bubblewrap strace e2fsprogs
test-setup:
	@command -v apt-get > /dev/null || { echo "this needs Debian or Ubuntu; elsewhere, install: $(DEBIAN)"; exit 1; }
	@dpkg -s $(DEBIAN) > /dev/null 2>&1 || { sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); $$sudo apt-get update -qq; \
	    for package in $(DEBIAN); do \
	        $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$package > /dev/null 2>&1 \
	            || echo "$$package could not be installed"; \
	    done; }

test-slurm: base
	@$(PYTHON) envs/build.py --all
	@$(RUN) python -m pytest tests/slurm -m "slurm or slurm_long" $(PYTEST)

test-faults: export FAULT_SEED ?= $(shell date +%Y%m%d)
test-faults: base
	@$(PYTHON) envs/build.py --all
	@$(RUN) python -m pytest tests/faults -m "workflow or faults_long" $(PYTEST)

test-docs: base
	@$(RUN) python -m pytest --quiet tests/documented
	@$(RUN) python -m tests.documented $(if $(PART),--part $(PART)) $(DOCS)

docs: base
	@$(PYTHON) envs/build.py docs
	@$(RUN) python -m docs.generator.reference work/docs/reference
	@NO_MKDOCS_2_WARNING=1 $(shell $(PYTHON) envs/build.py docs --where) -m mkdocs build --strict --quiet
	@echo "work/docs/site/index.html"

lint: base
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy
	@$(RUN) snakefmt --check Snakefile workflows
	@$(RUN) snakemake --lint

bench: base
	@$(PYTHON) envs/build.py --all
	@$(RUN) python -m tests.performance.own_speed
	@$(RUN) python -m pytest tests/performance --benchmark-only

# SMOKE="rows=evaluation,verl-grpo minutes=5": some rows, and the time for all
test-smoke: base
	@$(RUN) snakemake gpu_smoke --quiet rules --config scale=demo minutes=240 $(SMOKE)

# BUILD=--without-kernels leaves out flash-attn's kernels. As a job starts: nothing of this shell but HOME, and the system's PATH.
rehearse: base
	@for name in $(or $(ENVIRONMENTS),eval $(FRAMEWORKS)); do \
	    $(PYTHON) envs/build.py $$name --device cuda $(BUILD) || exit 1; \
	    echo "== $$name"; \
	    case $$name in eval) what="--evaluation --import vllm lm_eval transformers";; *) what="--framework $$name";; esac; \
	    env -i HOME="$$HOME" PATH=/usr/bin:/bin "$$PWD/$$($(PYTHON) envs/build.py $$name --device cuda $(BUILD) --where)" \
	        -m cluster.rehearsal $$what || failed=1; \
	done; test -z "$$failed"

gpu-smoke: base
	@$(RUN) snakemake gpu_smoke --quiet rules --config scale=full $(SMOKE)

# Known weaknesses of the locked packages, as OSV lists them: needs a network.
OSV = urllib.request.urlopen('https://api.osv.dev/v1/query', b'{\"package\": {\"purl\": \"pkg:pypi/pip@26.0\"}}', 20)
audit:
	@$(PYTHON) -c "import urllib.request; $(OSV)" 2> /dev/null || { \
	    echo "make audit asks api.osv.dev for known weaknesses, and it does not answer: run it where there is a network"; exit 1; }
	@test -x .envs/audit/bin/pip-audit || { $(PYTHON) -m venv .envs/audit && \
	    .envs/audit/bin/pip install --quiet --require-hashes -r envs/audit.lock; }
	@for lock in envs/*.lock envs/*/*.lock; do echo "== $$lock"; \
	    .envs/audit/bin/pip-audit --require-hashes --disable-pip --vulnerability-service osv -r $$lock || failed=1; \
	done; test -z "$$failed"

locks: base
	@$(PYTHON) envs/lock.py
