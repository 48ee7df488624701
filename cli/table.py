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
        names: key of the configuration that the command's arguments set; empty if it takes none.
        options: of Snakemake, always given.
    """

    name: str
    names: str = ""
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
            "runs", "List runs: framework, base model, GPUs, hours.", "openr1 --scale full", Click("cli.runs"),
        ),
        Command(
            "sweep", "Try settings of a run: one table, one figure.", "openr1/group-size --seeds 0,1,2",
            Target("sweep", names="sweep"),
        ),
        Command(
            "study", "Answer a question with the product; without a name, the list.", "kl",
            Click("cli.study"),
        ),
        Command(
            "report", "Make the page of the stored results again; trains and samples nothing.", "",
            Target("report", options=("--allowed-rules", "report", "report_page")),
        ),
    ),
    "Evaluate": (
        Command(
            "evaluate", "Score a model: a folder or hub id becomes samples, verdicts, scores and a page.",
            "MODEL --benchmark gsm8k math500 --limit 100", Click("cli.evaluate"),
        ),
        Command(
            "grade", "Judge generations made elsewhere: scores by each grader, and a page.", "math500.jsonl",
            Click("cli.grade"),
        ),
        Command(
            "contamination", "Has a run's base model read its benchmarks? It continues half-told questions.",
            "openr1/qwen2.5-math-7b", Target("contamination", names="reproduce"),
        ),
    ),
    "Compare": (
        Command(
            "compare", "Is B better than A? Models, checkpoints, files of completions, published figures, recipes.",
            "old.jsonl new.jsonl", Click("cli.compare"),
        ),
        Command(
            "compare-checkpoints", "The parts of compare: graded samples, samples needed, published figures.",
            "needed --difference 2", Module("base", "analysis.compare_checkpoints"),
        ),
        Command(
            "compare-recipes", "The test over training seeds, on graded folders.",
            "--a A/seed-*/graded --b B/seed-*/graded", Module("base", "analysis.compare_recipes"),
        ),
        Command(
            "benchmark", "What does the same accuracy cost through each framework? Time by phase, memory, money.",
            "--seeds 0,1,2,3,4", Click("cli.benchmark"),
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
            "report-page", "One page of any set of runs, from stored results.",
            "--results results/demo --run openr1/qwen2.5-math-7b/seed-0 --output page",
            Module("base", "analysis.report"),
        ),
        Command(
            "run-table", "One row per training: time, accuracy before and after.",
            "results/demo/report/gsm8k", Module("base", "analysis.run_table"),
        ),
        Command(
            "timeline", "A picture of when each job of a reproduction ran.", "--output timeline.png",
            Module("base", "analysis.timeline"),
        ),
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
            Target("environments", names="reproduce"),
        ),
        Command("preflight", "What would fail on this cluster, before anything is queued.", "", Target("preflight")),
        Command(
            "capacity", "GPU-hours, disk and GPU memory that runs need.", "openr1/qwen2.5-math-7b",
            Target("capacity", names="reproduce"),
        ),
        Command(
            "parse-runs", "Have each framework's own parser read every run; no GPU.", "", Target("parse_runs")
        ),
        Command(
            "gpu-smoke", "Whether the full-scale path runs on this GPU.", "", Target("gpu_smoke")
        ),
        Command(
            "translate", "Turn a launch script of one framework into another's, or into a run file.",
            "tinyzero/ppo-3b --to openrlhf", Module("base", "translate"),
        ),
        Command(
            "problems", "Load a benchmark or training set, checked by its hash.",
            "gsm8k --output gsm8k.parquet", Module("base", "tasks.load_problems"),
        ),
        Command(
            "overlap", "Do training problems occur in the benchmarks?",
            "--train train.parquet --benchmark math500.parquet --output overlap.csv", Module("base", "tasks.overlap"),
        ),
        Command(
            "convert", "Make a model folder of a LoRA adapter, a trainer's shards or a GGUF file.",
            "checkpoints/global_step_100/actor --output my-model", Click("cli.convert"),
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
        Command(
            "generate-samples", "Sample checkpoints on benchmarks, as the workflow does.",
            "--run mine/seed-0 --checkpoint 0=CHECKPOINT --benchmark math500 --data data --work work --output samples",
            Module("eval", "eval.generate"),
        ),
        Command(
            "grade-samples", "Grade stored samples, as the workflow does.",
            "--samples samples --data data --output graded", Module("eval", "eval.grade"),
        ),
        Command(
            "score-samples", "Score graded samples, as the workflow does.",
            "--graded graded --problems data --output scores.parquet", Module("base", "eval.score"),
        ),
    ),
    "Develop": (
        Command("new", "Write the files of a new task, run or framework.", "task anagrams", Click("cli.new")),
        Command(
            "upgrade", "What another version of a package would change; nothing is replaced until accepted.",
            "math-verify 0.9.0", Click("cli.upgrade"),
        ),
        Command(
            "conformance", "The same tensors through each framework's functions, and where they differ.", "",
            Target("conformance"),
        ),
        Command(
            "lm-eval", "lm-eval's command line, with these models and benchmarks added.", "ls tasks",
            Module("eval", "eval.lm_eval"),
        ),
        Command("completion", "Print the shell's completion of this program.", "bash", Click("cli.completion")),
    ),
}  # fmt: skip
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
