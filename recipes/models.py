"""Put a base model, by its name in recipes/models.yaml, into a folder: trained here, or downloaded at its revision.

    python -m recipes.models demo-countdown --output FOLDER

A demo model takes 2 to 3 minutes on one core; a download of a 7B model is 15 GB.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from contracts import model_folder, provenance
from system import durable, job_lifetime, work_lock
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.unknown_names import unknown
from system.yaml_files import read_yaml
from tasks import prompts, task_yaml

FOLDER = Path(__file__).resolve().parent
COMMIT = re.compile("[0-9a-f]{40}")
DEMO_KEYS = ("steps", "prompts", "problems", "habits", "skill")
DEMO_ENVIRONMENT = read_yaml(FOLDER / "demo_model.yaml")["environment"]


def library() -> dict[str, dict[str, Any]]:
    """All models by name: with `hub` and `revision`, or with `demo_task` and the `environment` that trains it.

    Raises:
        UserError: a model of the hub is not at a commit.
    """
    tasks = [task for task in task_yaml.task_names() if "demo" in task_yaml.settings(task)]
    entries = {f"demo-{task.replace('_', '-')}": {"demo_task": task} for task in tasks}
    entries |= read_yaml(FOLDER / "models.yaml")
    for name, entry in entries.items():
        if "hub" in entry and not COMMIT.fullmatch(str(entry.get("revision"))):
            raise UserError(
                f"recipes/models.yaml: {name}.revision is {entry.get('revision')!r}, but a branch can change: give the "
                "commit, 40 hexadecimal digits",
                code="revision-not-a-commit",
                model=name,
            )
    return {
        name: entry
        | ({"environment": "eval" if "untrained" in entry else DEMO_ENVIRONMENT} if "demo_task" in entry else {})
        for name, entry in entries.items()
    }


def names() -> list[str]:
    """The models that run files may name."""
    return list(library())


def settings(name: str) -> dict[str, Any]:
    """What decides a model's weights and tokenizer, besides the environment that trains a demo model."""
    entry = {key: value for key, value in library()[name].items() if key != "environment"}
    if "demo_task" not in entry:
        return entry
    training, demo = read_yaml(FOLDER / "demo_model.yaml"), demo_settings(entry)
    return {
        **entry,
        "training": {key: value for key, value in training.items() if key != "environment"},
        "demo": demo,
        "prompts": [prompts.load(prompt).text_fields() for prompt in demo["prompts"]],
    }


def demo_settings(entry: dict[str, Any]) -> dict[str, Any]:
    """`demo` of the task.yaml that a demo model learns, with the prompts of the model's own entry where it has some."""
    demo: dict[str, Any] = task_yaml.settings(entry["demo_task"])["demo"]
    if missing := [key for key in DEMO_KEYS if key not in demo]:
        raise UserError(
            f"tasks/{entry['demo_task']}/task.yaml: demo has no {', '.join(missing)}; add it",
            code="missing-setting",
            keys=missing,
        )
    return {**demo, "prompts": entry["demo_prompts"]} if "demo_prompts" in entry else demo


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
            "check the network, or run this rule on a machine that has one: finished downloads are kept",
            code="download-failed",
            name=repository,
        ) from None
    shutil.rmtree(output / ".cache", ignore_errors=True)
    provenance.write(output, repository=repository, revision=revision, commit=commit, sha256=model_folder.check(output))


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("name", help="a name in recipes/models.yaml, demo-<task>, or a hub id")
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    entry = find(arguments.name)
    job_lifetime.end_with_workflow()
    if "hub" in entry:
        # Always the same folder, so that a download that was killed continues; one process at a time uses it.
        downloads = arguments.output.with_name(f".{arguments.output.name}.download")
        with work_lock.sole_user(downloads, "downloading"):
            model = downloads / arguments.output.name
            download(entry["hub"], entry["revision"], model)
            durable.publish(model, arguments.output)
        shutil.rmtree(downloads, ignore_errors=True)
    else:
        from recipes.demo_model.build import build

        with durable.new(arguments.output) as model:
            build(model, entry["demo_task"], demo_settings(entry), entry.get("untrained"))


if __name__ == "__main__":
    run_command(main)
