"""Old name of `python -m tasks.loading`."""

from contracts import renamed
from contracts.errors import run_command
from tasks.loading import main

if __name__ == "__main__":
    renamed.warn("python -m recipes.tasks.loading", "python -m tasks.loading")
    run_command(main)
