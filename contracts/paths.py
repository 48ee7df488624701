"""Where results are: the layout of `results/<scale>/`, for Python modules and for the workflow's rules.

Names may be Snakemake wildcards: `ResultsFolder(Path("results/demo")).run("{recipe}/{run}/seed-{seed}").scores`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from contracts import steps
from system.errors import UserError
from system.text_safety import one_line

MODELS = "models/"  # the ids of models that are evaluated alone, without a training, begin with it
REFUSED = "{}*?[]"  # wildcards of Snakemake; the others are patterns for datasets and vLLM
PATH_VARIABLE = re.compile(r"<[a-z][a-z0-9_]*>")  # snakemake.pathvars


def check_path(key: str, path: str | Path, refused: str = REFUSED) -> None:
    """Refuse a configured path that Snakemake, a shell or a framework would not take as it is written.

    Args:
        key: where it is configured, for the message.
        path: a file, a folder, or the name of either.
        refused: characters that it may not have, besides control characters.

    Raises:
        UserError: it has one of these, a control character or a <word>, or begins with a dash or with a space, or ends
            with one.
    """
    text = str(path)
    refused_characters = "".join(dict.fromkeys(c for c in text if c in refused or not (c == " " or c.isprintable())))
    if refused_characters:
        why = f"has {', '.join(one_line(repr(character)) for character in refused_characters)}"
    elif variable := PATH_VARIABLE.search(text):
        why = f"has {variable[0]}, which is a variable for Snakemake"
    elif text.startswith("-"):
        why = "begins with a dash"
    elif text != text.strip():
        why = "begins or ends with a space"
    else:
        return
    raise UserError(
        f"{key} should be a plain path, but '{one_line(text)}' {why}: rename it, or choose another",
        code="unusable-path",
        key=key,
    )


@dataclass(frozen=True)
class RunFolder:
    """`runs/<recipe>/<run>/seed-<n>`: the results of one training of a run."""

    path: Path

    @property
    def samples(self) -> Path:
        """Folder of the sample tables, see `table`."""
        return self.path / "samples"

    @property
    def graded(self) -> Path:
        """Folder of the graded tables, see `table`."""
        return self.path / "graded"

    @property
    def scores(self) -> Path:
        """The score table."""
        return self.path / "scores.parquet"

    @property
    def training_log(self) -> Path:
        """The training log of all stages."""
        return self.path / "training_log.parquet"

    def stage(self, number: int | str) -> Path:
        """Folder of a stage's training_log.parquet and rollouts.parquet."""
        return self.path / steps.stage_folder(number)

    def bare_training(self, stage: int | str) -> Path:
        """How long the framework's own command took for a stage (frameworks/bare_training.py)."""
        return self.stage(stage) / "bare_training.json"

    def checkpoint(self, step: int | str) -> Path:
        """Folder of a model in Hugging Face format; step 0 is the base model."""
        return self.path / "checkpoints" / steps.folder(step)

    def limited(self, part: str) -> RunFolder:
        """Where samples, verdicts and scores of a part of the benchmarks go (eval.subset), beside the whole."""
        return RunFolder(self.path / "limited" / part)

    def regraded(self, grader: str, extraction: str) -> RunFolder:
        """Where verdicts of another grader or extraction rule go, and the scores from them."""
        return RunFolder(self.path / "regraded" / f"{grader}+{extraction}")

    @property
    def other_graders(self) -> dict[str, RunFolder]:
        """Where the verdicts of other graders with the protocol's extraction rule are, by grader."""
        scores = sorted((self.path / "regraded").glob("*+protocol/scores.parquet"))
        return {path.parent.name.partition("+")[0]: RunFolder(path.parent) for path in scores}


@dataclass(frozen=True)
class ResultsFolder:
    """`results/<scale>`."""

    path: Path

    @property
    def benchmarks(self) -> Path:
        """Folder of the benchmarks' problem tables, `<benchmark>.parquet`."""
        return self.path / "data" / "benchmarks"

    def problems(self, kind: str, name: str) -> Path:
        """The problem table of a training set (kind `train`) or of a benchmark (kind `benchmarks`)."""
        return self.path / "data" / kind / f"{name}.parquet"

    def overlap(self, which: str) -> Path:
        """The table of problems that training sets and benchmarks share; `which` is a recipe or `all`."""
        return self.path / "data" / "overlap" / f"{which}.csv"

    def beginnings(self, benchmark: str) -> Path:
        """The table of the beginnings of a benchmark's questions (eval.contamination)."""
        return self.path / "data" / "contamination" / f"{benchmark}.parquet"

    def contamination(self, run_id: str) -> Path:
        """What a run's base model completes of them."""
        return self.path / "contamination" / run_id / "contamination.csv"

    def model(self, name: str) -> Path:
        """Folder of a base model."""
        return self.path / "models" / name

    def run(self, run_id: str) -> RunFolder:
        """Folder of a run's results, by its id (contracts.seeds.run_id); raises UserError if it would be elsewhere."""
        if not run_id.isprintable() or {"", ".", ".."} & set(run_id.split("/")):
            raise UserError(
                f"a run should have a name such as imported/mine, which is its folder in {self.path / 'runs'}, "
                f"but is called '{one_line(run_id)}'",
                code="invalid-run-id",
            )
        return RunFolder(self.path / "runs" / run_id)


def table(folder: Path, step: int | str, benchmark: str) -> Path:
    """The table of one checkpoint and benchmark.

    Args:
        folder: RunFolder.samples or RunFolder.graded.
        step: training step of the checkpoint.
        benchmark: the benchmark's name.
    """
    return folder / steps.folder(step) / f"{benchmark}.parquet"


def tables(folder: Path) -> list[Path]:
    """All tables of such a folder, by step and benchmark."""
    return [file for step in steps.folders(folder).values() for file in sorted(step.glob("*.parquet"))]


def run_of_graded(folder: Path) -> str:
    """The id of the run whose verdicts a folder holds (RunFolder.graded); empty for others, as of contamination."""
    *parts, last = folder.parts
    if "runs" not in parts or last != RunFolder(Path()).graded.name:
        return ""
    return "/".join(parts[len(parts) - parts[::-1].index("runs") :])


def record(artefact: Path) -> Path:
    """The provenance record beside a file, or inside a folder."""
    return artefact / "provenance.json" if artefact.is_dir() else record_name(artefact)


def record_name(file: Path) -> Path:
    """The provenance record beside a file."""
    return file.with_name(f"{file.name}.provenance.json")
