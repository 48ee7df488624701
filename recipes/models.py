"""Put a base model, by its name in recipes/models.yaml, into a folder: built here, or downloaded at its revision.

python -m recipes.models demo --output FOLDER
"""

from __future__ import annotations

import argparse
import importlib
import shutil
from pathlib import Path
from typing import Any

from contracts import job_lifetime, provenance
from contracts.errors import UserError, run_command
from contracts.run_file import RECIPES, read_yaml

REGISTRY = RECIPES / "models.yaml"


def names() -> list[str]:
    """The models that run files may name."""
    return list(read_yaml(REGISTRY))


def find(name: str) -> dict[str, Any]:
    """The entry of a model, or of a hub id (with a slash); raises UserError with the names that exist."""
    if "/" in name:
        return {"hub": name, "revision": "main"}
    known = read_yaml(REGISTRY)
    if name not in known:
        raise UserError(f"recipes/models.yaml has no model '{name}'; it has {', '.join(known)}")
    entry: dict[str, Any] = known[name]
    return entry


def download(repository: str, revision: str, output: Path) -> None:
    """Fetch a model from the Hugging Face hub and record which commit it was.

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
    parser.add_argument("name", help="a name in recipes/models.yaml, or a hub id")
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    entry = find(arguments.name)
    job_lifetime.end_with_workflow()
    partial = arguments.output.with_name(f".{arguments.output.name}.partial")
    if "hub" in entry:
        partial.mkdir(parents=True, exist_ok=True)
        download(entry["hub"], entry["revision"], partial)
    else:
        shutil.rmtree(partial, ignore_errors=True)
        importlib.import_module(entry["build"]).build(partial, entry["tasks"])
    shutil.rmtree(arguments.output, ignore_errors=True)
    shutil.rmtree(partial / ".cache", ignore_errors=True)
    partial.rename(arguments.output)


if __name__ == "__main__":
    run_command(main)
