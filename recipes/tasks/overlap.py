"""Old name of `python -m tasks.overlap`."""

from contracts import renamed
from contracts.errors import run_command
from tasks.overlap import main

if __name__ == "__main__":
    renamed.warn("python -m recipes.tasks.overlap", "python -m tasks.overlap")
    run_command(main)
