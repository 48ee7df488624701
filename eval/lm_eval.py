"""lm-eval's own command line, with CrossZero's models and benchmarks added.

    crosszero lm-eval run --model crosszero-stored-samples --tasks crosszero_arithmetic_words \
        --model_args samples=SAMPLES/step-100,data=DATA,protocol=demo
    crosszero lm-eval run --model crosszero-vllm --tasks crosszero_arithmetic_words --apply_chat_template \
        --device cpu --model_args pretrained=CHECKPOINT,data=DATA,protocol=demo,work=WORK

DATA is the folder of the benchmarks' problem tables. Everything else is as in `lm_eval`, whose console script cannot
load models from elsewhere; `crosszero lm-eval run --help` prints its options.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys

from eval import vllm_settings
from eval.benchmark import BENCHMARKS
from system import toolchain
from system.command_line import argument_parser, program_name
from system.errors import run_command

MODELS = {
    "crosszero-vllm": "eval.vllm_model:CrossZeroVLLM",
    "crosszero-stored-samples": "eval.stored_samples_model:StoredSamples",
}
OWN_PREFIX = "crosszero_"


def only_own_tasks(arguments: list[str]) -> bool:
    """Whether `--tasks` names benchmarks of this project alone."""
    after = itertools.dropwhile(lambda word: word not in ("--tasks", "-t"), arguments)
    names = itertools.takewhile(lambda word: not word.startswith("-"), itertools.islice(after, 1, None))
    tasks = [task for name in names for task in name.split(",")]
    return bool(tasks) and all(task.startswith(OWN_PREFIX) for task in tasks)


def main() -> None:
    """Register our models by name, so that vLLM is imported only where it is used, and run lm-eval."""
    if sys.argv[1:2] in ([], ["-h"], ["--help"]):
        help_text = argument_parser(__doc__)
        help_text.usage = f"{program_name()} {{run,ls,validate}} …"
        help_text.print_help()
        return
    if "--device" in sys.argv and sys.argv[sys.argv.index("--device") + 1 :][:1] == ["cpu"]:
        os.environ.update(vllm_settings.environment("cpu"))
    else:
        os.environ.update(toolchain.environment())
    if sys.argv[1:2] not in (["ls"], ["validate"]) and "--include_path" not in sys.argv:
        sys.argv += ["--include_path", str(BENCHMARKS)]

    import lm_eval.models  # registers lm-eval's own models first
    import lm_eval.tasks
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.registry import model_registry

    for name, target in MODELS.items():
        model_registry.register(name, target=target)
    if only_own_tasks(sys.argv):  # lm-eval reads its own 14,000 task files otherwise, for ten seconds
        lm_eval.tasks.TaskManager = functools.partial(lm_eval.tasks.TaskManager, include_defaults=False)
    cli_evaluate()


if __name__ == "__main__":
    run_command(main)
