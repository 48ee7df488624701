"""What a page calls its runs. A run that trained a demo model is not named after the published model of its recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from contracts import seeds
from contracts.errors import UserError
from contracts.run_file import Run
from recipes import models
from recipes import runs as run_files


def _variant(run: Run) -> str:
    """What a run's own name adds to the published model's, such as collapse, or a control's kind; often nothing."""
    if run.control:
        return f"-{run.control}"
    published = run_files.load_run(run.name, "full").model
    own = run.name.partition("/")[2]
    return own.removeprefix(published) if own.startswith(published) else ""


def _parts(name: str, scale: str) -> list[str] | None:
    """The title of a demo model's run, then what tells runs with the same title apart; None for all other runs."""
    try:
        run = run_files.load_run(seeds.run_of(name), scale)
    except UserError:  # generations made elsewhere, or a run whose file is gone
        return None
    if "demo_task" not in models.find(run.model):
        return None
    batch = run.stages[0].batch
    return [
        f"{run.name.partition('/')[0]}{_variant(run)} demo, {run.algorithm.upper()} ({run.framework})",
        run.prompt,
        f"{batch['prompts_per_update']} × {batch['samples_per_prompt']}",
        name.rpartition("/")[2].replace("-", " "),
    ]


def titles(names: Sequence[str], scale: str) -> dict[str, str]:
    """A title for each run, all different: a demo model's run by its recipe, algorithm and framework, others by name.

    Args:
        names: `<recipe>/<run>/seed-<n>` each.
        scale: demo or full.
    """
    parts = {name: own for name in names if (own := _parts(name, scale))}
    found = {name: own[0] for name, own in parts.items()}
    for position in range(1, 4):
        shared = {title for title, count in Counter(found.values()).items() if count > 1}
        for title in shared:
            alike = [name for name in found if found[name] == title]
            if len({parts[name][position] for name in alike}) > 1:
                found |= {name: f"{title}, {parts[name][position]}" for name in alike}
    counts = Counter(found.values())
    seen: Counter[str] = Counter()
    for name, title in found.items():
        seen[title] += 1
        found[name] = f"{title}, {seen[title]}" if counts[title] > 1 else title
    return {name: found.get(name, name) for name in names}
