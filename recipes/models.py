"""Put a base model, by its name in recipes/models.yaml, into a folder: trained here, or downloaded at its revision.

    python -m recipes.models demo-countdown --output FOLDER

A demo model takes 2 to 3 minutes on one core; a download of a 7B model is 15 GB.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from contracts import job_lifetime, provenance
from contracts.errors import UserError, run_command
from contracts.unknown_names import unknown
from contracts.yaml_files import read_yaml
from tasks import task_files

FOLDER = Path(__file__).resolve().parent
DEMO_ENVIRONMENT = read_yaml(FOLDER / "demo_model.yaml")["environment"]


def library() -> dict[str, dict[str, Any]]:
    """All models by name: with `hub` and `revision`, or with `demo_task` and the `environment` that trains it."""
    tasks = [task for task in task_files.names() if "demo" in task_files.settings(task)]
    found = {f"demo-{task.replace('_', '-')}": {"demo_task": task} for task in tasks}
    found |= read_yaml(FOLDER / "models.yaml")
    return {
        name: entry | ({"environment": DEMO_ENVIRONMENT} if "demo_task" in entry else {})
        for name, entry in found.items()
    }


def names() -> list[str]:
    """The models that run files may name."""
    return list(library())


def find(name: str) -> dict[str, Any]:
    """The entry of a model, or of a hub id (with a slash); UserError with the nearest names if there is none."""
    if "/" in name:
        return {"hub": name, "revision": "main"}
    known = library()
    if name not in known:
        raise unknown("model", name, known)
    return known[name]


def download(repository: str, revision: str, output: Path) -> None:
    """Fetch a model from the Hugging Face hub and record which commit it was.

    Args:
        repository: hub id.
        revision: branch, tag or commit.
        output: folder for its files.

    Raises:
        UserError: the hub cannot be reached, or has no such repository or revision.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        commit = HfApi().model_info(repository, revision=revision, timeout=20).sha
        snapshot_download(repository, revision=commit, local_dir=output, ignore_patterns=["*.pth", "*.gguf", "*.onnx"])
    except (OSError, HfHubHTTPError, LocalEntryNotFoundError) as error:
        raise UserError(
            f"{repository} at {revision} could not be downloaded from the Hugging Face hub ({type(error).__name__}); "
            "check the network, or run this rule on a machine that has one: finished downloads are kept"
        ) from None
    provenance.write(output, repository=repository, revision=revision, commit=commit)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a name in recipes/models.yaml, demo-<task>, or a hub id")
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    entry = find(arguments.name)
    job_lifetime.end_with_workflow()
    partial = arguments.output.with_name(f".{arguments.output.name}.partial")
    if "hub" in entry:
        partial.mkdir(parents=True, exist_ok=True)
        download(entry["hub"], entry["revision"], partial)
    else:
        from recipes.demo_model.build import build

        shutil.rmtree(partial, ignore_errors=True)
        build(partial, entry["demo_task"])
    shutil.rmtree(arguments.output, ignore_errors=True)
    shutil.rmtree(partial / ".cache", ignore_errors=True)
    partial.rename(arguments.output)


if __name__ == "__main__":
    run_command(main)
