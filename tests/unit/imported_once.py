"""A module that knows which process has imported it; tests/unit/test_warm_processes.py has it imported."""

import os

PROCESS = os.getpid()
