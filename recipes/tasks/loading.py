"""Old name of `python -m tasks.loading`."""

from contracts import renamed

if __name__ == "__main__":
    renamed.run("recipes.tasks.loading", "tasks.loading")
