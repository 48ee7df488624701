"""The commands of `crosszero`, in the order in which a person meets them: each names what it starts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Click:
    """A command of this folder: the module, whose function `command` click runs."""

    module: str


@dataclass(frozen=True)
class Module:
    """A program of the project, with its own options."""

    environment: str  # a folder of envs/
    module: str  # as for `python -m`


@dataclass(frozen=True)
class Target:
    """A target of the workflow.

    Attributes:
        name: of the rule.
        runs: whether the command's arguments are runs or recipes.
        options: of Snakemake, always given.
    """

    name: str
    runs: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """A command of `crosszero`.

    Attributes:
        name: what the user types.
        summary: one line, for the list and the help text.
        example: how it is called, after `crosszero <name>`.
        starts: what it starts.
    """

    name: str
    summary: str
    example: str
    starts: Click | Module | Target


GROUPS: dict[str, tuple[Command, ...]] = {
    "Reproduce": (
        Command(
            "reproduce", "Train, evaluate and report runs or whole recipes.",
            "openr1/qwen2.5-math-7b --set objective.kl_coefficient=0.01", Click("cli.reproduce"),
        ),
        Command(
            "report", "Make the page of the stored results again; trains and samples nothing.", "",
            Target("report", options=("--allowed-rules", "report", "report_page")),
        ),
    ),
    "Evaluate": (
        Command(
            "grade", "Judge generations made elsewhere: scores by each grader, and a page.", "math500.jsonl",
            Click("cli.grade"),
        ),
        Command(
            "contamination", "Has a run's base model read its benchmarks? It continues half-told questions.",
            "openr1/qwen2.5-math-7b", Target("contamination", runs=True),
        ),
    ),
    "Compare": (
        Command(
            "compare", "Is B better than A? Models, checkpoints, files of completions, published figures, recipes.",
            "old.jsonl new.jsonl", Click("cli.compare"),
        ),
        Command("claims", "What the stored results say of each claim of the documents.", "", Target("claims")),
        Command("fidelity", "Every published value beside ours, with its source.", "", Target("fidelity")),
        Command(
            "graders", "How much a score depends on the grader.", "--samples FILE --output agreement.md",
            Module("eval", "eval.grader_agreement"),
        ),
    ),
    "Look": (
        Command(
            "show", "What is this file or folder? Run, step, protocol, numbers, how it was made.",
            "openr1/qwen2.5-math-7b/seed-0/step-24", Click("cli.show"),
        ),
        Command("watch", "Serve a page with curves and completions while runs go on.", "", Target("watch")),
        Command(
            "why", "Why did this number change? Compare how two results were made.", "RESULT OTHER_RESULT",
            Module("base", "analysis.provenance_diff"),
        ),
        Command("efficiency", "What finished cluster jobs used of what they asked for.", "", Target("efficiency")),
    ),
    "Prepare": (
        Command("doctor", "What runs on this machine, and what to change.", "", Target("doctor")),
        Command(
            "environments", "Install the environments of runs, such as on a login node.", "openr1/qwen2.5-math-7b",
            Target("environments", runs=True),
        ),
        Command("preflight", "What would fail on this cluster, before anything is queued.", "", Target("preflight")),
        Command(
            "capacity", "GPU-hours, disk and GPU memory that runs need.", "openr1/qwen2.5-math-7b",
            Target("capacity", runs=True),
        ),
        Command(
            "parse-runs", "Have each framework's own parser read every run; no GPU.", "", Target("parse_runs")
        ),
        Command(
            "gpu-smoke", "Whether the full-scale path runs on this GPU.", "", Target("gpu_smoke")
        ),
        Command(
            "translate", "Turn a launch script of one framework into another's, or into a run file.",
            "train.sh --to trl", Module("base", "translate"),
        ),
        Command(
            "import-log", "Show the log of a training made elsewhere beside ours.", "trainer_state.json --help",
            Module("base", "frameworks.import_log"),
        ),
        Command(
            "import-samples", "Bring generations made elsewhere into the results.", "--help",
            Module("base", "eval.importers"),
        ),
        Command(
            "export-inspect", "Write graded samples as logs of inspect_ai.",
            "--graded results/demo/runs/openr1/qwen2.5-math-7b/seed-0/graded --output logs",
            Module("base", "eval.export_inspect"),
        ),
    ),
    "Develop": (
        Command(
            "conformance", "The same tensors through each framework's functions, and where they differ.", "",
            Target("conformance"),
        ),
        Command(
            "lm-eval", "lm-eval's command line, with these models and benchmarks added.", "--tasks list",
            Module("eval", "eval.lm_eval"),
        ),
        Command("completion", "Print the shell's completion of this program.", "bash", Click("cli.completion")),
    ),
}  # fmt: skip
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
