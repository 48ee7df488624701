# Every job of every rule runs below system/subreaper.py, which ends it when Snakemake ends, however that ends: otherwise
# shell and job would live on, and the same job started again would meet its predecessor.

import os
import sys
from pathlib import Path

import system

os.environ.update(CROSSZERO_PYTHON=sys.executable, CROSSZERO_WORKFLOW=str(os.getpid()))
shell.executable(Path(system.__file__).with_name("job_shell") / "bash")
