"""What a page calls its runs. A run of another model than the published one of its recipe is not named after that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from analysis.statistics.training_seeds import SEED
from contracts import seeds
from contracts.paths import MODELS
from contracts.run_file import Run
from recipes import models, variants
from recipes import runs as run_files
from system.errors import ROOT, UserError
from system.yaml_files import read_yaml

OBJECTIVES = ROOT / "frameworks" / "objectives.yaml"
_SIZE = re.compile(r"\d+(\.\d+)?b")
_MODEL = re.compile(
    re.escape(MODELS) + r"(.+)-([0-9a-f]{8}-[0-9a-f]{8})(?:-((?:first|random)-[0-9a-z-]+))?"
)  # ComparisonRequest.evaluation_id


def _own_suffix(run: Run) -> str:
    """What a run's own name adds to the published model's, such as collapse, or a control's kind; often nothing."""
    if run.control:
        return f"-{run.control}"
    published = run_files.load_run(variants.base_run(run.name), "full").model
    own = variants.base_run(run.name).partition("/")[2]
    return own.removeprefix(published) if own.startswith(published) else ""


def _own_words(run: Run) -> str:
    """What a run's name says besides its algorithm, its framework and the published model, such as "no std"."""
    published = run_files.load_run(variants.base_run(run.name), "full").model.split("-")
    name_parts = variants.base_run(run.name).partition("/")[2].split("-")
    known = {run.algorithm, run.framework, *published}
    return " ".join(word for word in name_parts if word not in known and not _SIZE.fullmatch(word))


def _algorithm(run: Run) -> str:
    """Its estimator of advantages or its policy loss, where they have a name of their own; else PPO or GRPO."""
    objective = run.stages[0].objective
    names = {"estimators": objective.get("estimator"), "losses": objective.get("policy_loss", "ppo")}
    kind = "estimators" if names["estimators"] else "losses"
    if names[kind] == "ppo":  # the loss of both
        return run.algorithm.upper()
    return str(read_yaml(OBJECTIVES)[kind][names[kind]].get("name", names[kind].upper()))


def _parts(name: str, scale: str) -> list[str] | None:
    """A title, then what tells runs with the same one apart, of another model than published; None for other runs."""
    if model := _MODEL.fullmatch(name):
        name, own, part = model.groups()
        return [f"{name} ({part.replace('-', ' ')})" if part else name, own, "", ""]
    try:
        run = run_files.load_run(name, scale)
    except UserError:  # generations made elsewhere, or a run whose file is gone
        return None
    if run.model == run_files.load_run(variants.base_run(name), "full").model:
        return None
    trained = "demo" if "demo_task" in models.find(run.model) else run.model
    batch = run.stages[0].batch
    return [
        f"{run.name.partition('/')[0]}{_own_suffix(run)} {trained}, {_algorithm(run)} ({run.framework})"
        + (f", {variants.label(name)}" if variants.is_variant(name) else ""),
        _own_words(run),
        run.prompt,
        f"{batch['prompts_per_update']} × {batch['samples_per_prompt']}",
    ]


def _readable_name(name: str, run: str) -> str:
    """The name of a run without a title; of a variant, with its settings as they are written for readers."""
    if not variants.is_variant(run):
        return name
    return f"{name.replace(run, variants.base_run(run))}, {variants.label(run)}"


def with_quantisation(title: str, kind: str) -> str:
    """A title that says how the weights came quantised, if they did (`kind`); a seed stays at its end."""
    own = SEED.sub("", title)
    return f"{own}, from {kind} weights{title[len(own) :]}" if kind else title


def titles(names: Sequence[str], scale: str) -> dict[str, str]:
    """A title for each run, all different: a demo model's run by its recipe, algorithm and framework, others by name.

    A model that was evaluated alone has the name that was given, without the hashes of its id.

    Args:
        names: `<recipe>/<run>/seed-<n>` each.
        scale: one of SCALES.
    """
    run_of = {name: seeds.run_of(name) for name in names}
    parts = {run: own for run in dict.fromkeys(run_of.values()) if (own := _parts(run, scale))}
    title_of = {run: own[0] for run, own in parts.items()}
    for position in range(1, 4):
        shared = {title for title, count in Counter(title_of.values()).items() if count > 1}
        for title in shared:
            alike = [run for run in title_of if title_of[run] == title]
            if len({parts[run][position] for run in alike}) > 1:
                title_of |= {run: ", ".join(filter(None, (title, parts[run][position]))) for run in alike}
    counts = Counter(title_of.values())
    seen: Counter[str] = Counter()
    for run, title in title_of.items():
        seen[title] += 1
        title_of[run] = f"{title}, {seen[title]}" if counts[title] > 1 else title
    trainings = Counter(run_of.values())
    return {
        name: title_of.get(run, _readable_name(name, run))
        + (f", {name.rpartition('/')[2].replace('-', ' ')}" if run in title_of and trainings[run] > 1 else "")
        for name, run in run_of.items()
    }
