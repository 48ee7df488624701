"""The command line of training: check all runs of a framework, train a stage, export a checkpoint.

The workflow calls it with the framework's own Python:

python -m frameworks check --framework trl
python -m frameworks train --run openr1/qwen2.5-math-7b --scale demo --seed 0 --stage 1 …
python -m frameworks bare --run openr1/qwen2.5-math-7b --scale demo --seed 0 --stage 1 …
python -m frameworks export --run openr1/qwen2.5-math-7b --scale demo --step 20 …
"""

from __future__ import annotations

from pathlib import Path

from contracts.run_file import SCALES
from frameworks import bare_training
from frameworks.check_runs import check
from frameworks.export_checkpoint import export
from frameworks.train_stage import train
from system.command_line import argument_parser
from system.errors import run_command


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    checking = verbs.add_parser("check", help="render every run and let the framework's parser read it")
    checking.add_argument("--framework", required=True)
    checking.add_argument("--output", type=Path, help="written when all runs are accepted")
    checking.set_defaults(call=check)
    for name, call, text in (
        ("train", train, "train one stage"),
        ("bare", bare_training.train, "train one stage by the framework's own command alone, and time it"),
        ("export", export, "write one checkpoint"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("--run", required=True, help="<recipe>/<run>, or the path of a run file")
        verb.add_argument("--scale", required=True, choices=SCALES)
        verb.add_argument("--seed", type=int, required=True)
        verb.add_argument("--model", type=Path, required=True, help="folder of the model that training starts from")
        verb.add_argument(
            "--work", type=Path, required=True, help="folder of the stage's native files; survives a failed job"
        )
        verb.add_argument("--output", type=Path, required=True)
        verb.set_defaults(call=call)
        if name != "export":
            verb.add_argument("--stage", type=int, default=1)
            verb.add_argument("--problems", type=Path, required=True, help="problem table of the training set")
            verb.add_argument(
                "--one-gpu", type=int, metavar="COMPLETIONS", help="train on one GPU, with forward passes of so many"
            )
        if name == "train":
            verb.add_argument(
                "--stop-on-collapse", action="store_true",
                help="end the training at a grave sign of collapse, instead of only warning",
            )  # fmt: skip
            verb.add_argument(
                "--end-at-collapse", action="store_true",
                help="the same without an error: the log until then is written, and no checkpoint is exported",
            )  # fmt: skip
            verb.add_argument("--rollouts", type=Path, required=True, help="table of completions that were trained on")
        if name == "export":
            verb.add_argument("--step", type=int, required=True)
            verb.add_argument(
                "--source", type=Path, default=Path(), help="training log of its stage, which says if that was ended"
            )
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    run_command(main)
