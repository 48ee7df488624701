"""The generation stage: completions of all checkpoints of a run on benchmarks, under one protocol, with vLLM.

Here it is planned what is missing, and the finished tables are written. The completions are made by processes of
eval/vllm_worker.py, which eval/vllm_supervisor.py starts and watches.

    crosszero generate-samples --run mine/seed-0 --checkpoint 0=models/base --checkpoint 100=checkpoints/step-100 \
        --benchmark arithmetic_words --protocol demo --seed 0 --data results/demo/data/benchmarks \
        --work work/demo/openr1 --output samples --device cpu

writes samples/step-0/arithmetic_words.parquet and so on, with the provenance of each beside it. After a kill, the same
command generates only what is missing, with the same or another number of GPUs; so does one with more repeats or
problems (`--limit 50` takes the first 50 of each benchmark).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import chat_template, ended_training, model_folder, model_notes, paths, provenance, seeds, steps, tables
from eval import benchmark, protocols, sample_journal, vllm_settings, vllm_supervisor
from eval import subset as subsets
from eval.generation_target import Target
from system import forked_job, work_lock
from system.command_line import argument_parser
from system.errors import UserError, run_command
from tasks import prompts

ENGINE_FACTS = ("context_tokens", "chat_template_sha256", "vllm_engine")  # of eval.vllm_worker


def parse_checkpoints(values: list[str]) -> dict[int, Path]:
    """`STEP=FOLDER` arguments as a dictionary."""
    folders: dict[int, Path] = {}
    for value in values:
        step, equals, folder = value.partition("=")
        if not (equals and step.isdigit() and folder):
            raise UserError(
                f"--checkpoint needs STEP=FOLDER, such as 100=checkpoints/step-100, not '{value}'",
                code="malformed-option",
                option="--checkpoint",
            )
        if int(step) in folders:
            raise UserError(f"--checkpoint was given twice for step {step}", code="repeated-name", name=int(step))
        folders[int(step)] = Path(folder)
    return folders


def list_targets(arguments: argparse.Namespace, protocol: protocols.Protocol) -> list[Target]:
    """All (checkpoint, benchmark) pairs, checked; raises UserError before anything expensive starts."""
    benchmark.check_names(arguments.benchmark)
    folders, needs = parse_checkpoints(arguments.checkpoint), protocol.needs_chat_template()
    models = {step: model_folder.check(folder, chat_template=needs) for step, folder in sorted(folders.items())}
    tables_of = {name: benchmark.problems(arguments.data, name) for name in arguments.benchmark}
    written = {step: _check_prompt(folder, protocol) for step, folder in folders.items()} if needs else {}
    _print_notes(folders.values(), arguments.device, protocol)
    limit = subsets.choose(arguments.limit, arguments.sample, arguments.sample_seed)
    problem_hashes = {name: benchmark.problems_hash(arguments.data, name) for name in arguments.benchmark}
    shared = {
        "decoding": protocol.decoding(),
        "prompt": prompts.load(protocol.prompt).text_fields(),
        "seed": arguments.seed,
        "device": arguments.device,
        "engine": {**vllm_settings.engine(arguments.device), "max_model_len": arguments.max_model_len},
        "versions": {name: importlib.metadata.version(name) for name in ("vllm", "lm-eval", "transformers")},
    }
    wanted = []
    for step, folder in sorted(folders.items()):
        for name in arguments.benchmark:
            settings = {"model": models[step], "benchmark": name, "problems": problem_hashes[name], **shared}
            if date := written.get(step):
                settings["chat_template_date"] = date
            wanted.append(
                Target(
                    step=step,
                    checkpoint=folder,
                    benchmark=name,
                    run=arguments.run,
                    protocol=protocol,
                    problems=limit.rows(tables_of[name]) if limit else tables_of[name],
                    repeats=protocol.repeats_of(name),
                    settings=settings,
                    folder=arguments.work
                    / steps.folder(step)
                    / f"{name}-{sample_journal.settings_hash(settings)[:16]}",
                    output=paths.table(arguments.output, step, name),
                    subset=limit.record(tables_of[name]) if limit else None,
                )
            )
    return wanted


def _print_notes(folders: Iterable[Path], device: str, protocol: protocols.Protocol) -> None:
    """Print what is worth knowing of the models, each sentence once."""
    dtype = vllm_settings.engine(device)["dtype"]
    for note in dict.fromkeys(note for each in folders for note in model_notes.notes(each, dtype, protocol.max_tokens)):
        print(f"note: {note}", file=sys.stderr)


def _check_prompt(folder: Path, protocol: protocols.Protocol) -> str | None:
    """Try the protocol's prompt on a model's chat template, which takes no engine; the date that the template writes.

    Raises:
        UserError: the template does not take the prompt, or not the protocol's variables.
    """
    template = model_folder.chat_template(folder)
    if template is None:
        return None
    try:
        prompts.load(protocol.prompt).render(
            prompts.QUESTION, chat_template.Renderer(template), protocol.chat_template_kwargs
        )
    except UserError as error:
        raise error.within(f"model {folder}") from None
    return protocol.chat_template_kwargs.get("date_string") or chat_template.recorded_date(template)


def make_plan(arguments: argparse.Namespace, wanted: list[Target], overrides: dict[str, Any]) -> dict[str, Any]:
    """What is still missing, for the vLLM processes to share.

    Args:
        arguments: of the command line.
        wanted: tables that are not finished.
        overrides: of the protocol's fields.
    """
    by_step: dict[int, dict[str, Any]] = {}
    for target in wanted:
        stored = target.stored_samples()
        missing = [key for key in target.expected() if key not in stored]
        if missing:
            job = by_step.setdefault(
                target.step, {"step": target.step, "checkpoint": str(target.checkpoint), "missing": {}, "folders": {}}
            )
            job["missing"][target.benchmark] = missing
            job["folders"][target.benchmark] = str(target.folder)
    engine: dict[str, Any] = {"max_model_len": arguments.max_model_len, "max_num_seqs": arguments.max_num_seqs}
    if arguments.device == "cuda":
        engine["tensor_parallel_size"] = arguments.tensor_parallel
    return {
        "processes": arguments.data_parallel,
        "gpus": arguments.gpus,
        "device": arguments.device,
        "protocol": arguments.protocol,
        "overrides": overrides,
        "seed": arguments.seed,
        "data": str(arguments.data),
        "benchmarks": sorted({target.benchmark for target in wanted}),
        "engine": {key: value for key, value in engine.items() if value is not None},
        "jobs": list(by_step.values()),
    }


def read_engine_facts(target: Target) -> dict[str, Any]:
    """What eval.vllm_worker recorded of its engine beside the samples; UserError if that is lost.

    Where nothing had to be generated, as for a part of a benchmark whose whole is there, the output's record has it.
    """
    folder, record = target.folder, provenance.read(target.output)
    file = folder / "engine.json"
    if not file.is_file() and target.samples_of_smaller_output() and "context_tokens" in record:
        return {key: record[key] for key in ENGINE_FACTS if key in record}
    try:
        facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        facts["context_tokens"] = int(facts["context_tokens"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file} is missing or damaged ({error}): delete {folder}, to generate its samples again",
            code="damaged-record",
            path=str(file),
        ) from None
    return facts


def write_table(target: Target, facts: dict[str, Any]) -> None:
    """Write the sample table and its provenance, after checking that every requested sample is there."""
    stored, protocol = target.stored_samples(), target.protocol
    keys = target.expected()
    absent = [key for key in keys if key not in stored]
    if absent:
        raise UserError(
            f"{len(absent)} of {len(keys)} requested samples of step {target.step} on {target.benchmark} are missing, "
            f"the first is {absent[0]}: run the same command again",
            code="missing-samples",
            count=len(absent),
        )
    engine, samples = read_engine_facts(target), [stored[key] for key in keys]
    gold = dict(zip(target.problems["problem_id"].to_pylist(), target.problems["answer"].to_pylist(), strict=True))
    rows = [
        {
            **{name: sample[name] for name in tables.SAMPLE.names if name in sample},
            "run": target.run,
            "step": target.step,
            "benchmark": target.benchmark,
            "gold": gold[sample["problem_id"]],
            "protocol": protocol.name,
        }
        for sample in samples
    ]
    tables.write(pa.Table.from_pylist(rows, tables.SAMPLE), tables.SAMPLE, target.output)
    longest = max((s["prompt_tokens"] for s in samples if s["finish_reason"] != "prompt_too_long"), default=0)
    full_budget = longest + protocol.max_tokens <= engine["context_tokens"]
    if not full_budget:
        print(
            f"warning: step {target.step} on {target.benchmark}: the context of {engine['context_tokens']} tokens "
            f"leaves less than the protocol's {protocol.max_tokens} for some completions (longest prompt: {longest})",
            file=sys.stderr,
        )
    provenance.write(
        target.output,
        **target.identity(),
        checkpoint=str(target.checkpoint),
        **provenance.of_weights(target.checkpoint),
        model_sha256=target.settings["model"],
        problems_sha256=target.settings["problems"],
        prompt=target.settings["prompt"],
        chat_template_date=target.settings.get("chat_template_date"),
        seed={"base": target.settings["seed"], "rule": seeds.SAMPLING_RULE},
        requested=len(keys),
        delivered=len(samples),
        finish_reasons=dict(sorted(Counter(sample["finish_reason"] for sample in samples).items())),
        completion_budget={"max_tokens": protocol.max_tokens, "fits_context": full_budget},
        **engine,
        **facts,
    )


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--run", required=True, help="name of the run, <recipe>/<run>/seed-<n>")
    parser.add_argument("--checkpoint", required=True, action="append", metavar="STEP=FOLDER")
    parser.add_argument("--benchmark", required=True, action="extend", nargs="+")
    parser.add_argument("--protocol", required=True, help="a name in eval/protocols.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a protocol's field")
    parser.add_argument("--seed", type=int, default=0, help="base seed (default: 0)")
    subsets.add_options(parser)
    parser.add_argument("--data", required=True, type=Path, help="folder of the benchmarks' problem tables")
    parser.add_argument("--work", required=True, type=Path, help="folder of unfinished samples; survives a failed job")
    parser.add_argument("--output", required=True, type=Path, help="folder for step-<n>/<benchmark>.parquet")
    parser.add_argument("--device", choices=vllm_settings.DEVICES, default="cpu")
    parser.add_argument("--data-parallel", type=int, default=1, metavar="N", help="vLLM processes, each with a model")
    parser.add_argument("--tensor-parallel", type=int, default=1, metavar="N", help="GPUs per model")
    parser.add_argument("--max-model-len", type=int, metavar="TOKENS", help="context (default: the model's)")
    parser.add_argument("--max-num-seqs", type=int, metavar="N", help="sequences at a time (default: vLLM's)")
    parser.add_argument("--stall-seconds", type=float, default=1800, help="longest time without progress")
    return parser.parse_args()


def main() -> None:
    """Generate what is missing, then write the tables."""
    arguments = parse_arguments()
    if why := ended_training.reason(*parse_checkpoints(arguments.checkpoint).values()):
        ended_training.write_absence(arguments.output, why)
        return
    overrides = protocols.parse_overrides(arguments.set)
    protocol = protocols.load(arguments.protocol, overrides)
    arguments.protocol = protocol.name
    arguments.benchmark = list(dict.fromkeys(arguments.benchmark))
    if min(arguments.data_parallel, arguments.tensor_parallel) < 1:
        raise UserError("--data-parallel and --tensor-parallel must be at least 1", code="argument-out-of-range")
    if arguments.device == "cpu" and arguments.tensor_parallel > 1:
        raise UserError(
            "--tensor-parallel is for GPUs; on a CPU use --data-parallel for several processes", code="needs-a-gpu"
        )
    cuda = arguments.device == "cuda"
    if not cuda:
        forked_job.fork_in_workflow(vllm_settings.PRELOADED, vllm_settings.environment("cpu"))
    arguments.gpus = vllm_supervisor.devices(arguments.data_parallel, arguments.tensor_parallel) if cuda else []
    started = time.monotonic()
    with work_lock.sole_user(arguments.work, "generating"):
        wanted = [target for target in list_targets(arguments, protocol) if not target.is_finished()]
        count = sum(len(target.expected()) - len(target.samples_of_smaller_output()) for target in wanted)
        line = vllm_supervisor.ProgressLine(count, [target.folder for target in wanted])
        vllm_supervisor.run(
            lambda: make_plan(arguments, wanted, overrides), arguments.work, line, arguments.stall_seconds
        )
        line.show(last=True)
        facts = {
            "overrides": overrides,
            "data_parallel": arguments.data_parallel,
            "tensor_parallel": arguments.tensor_parallel,
        }
        for target in wanted:
            write_table(target, facts)
        # Not before all tables are written: Snakemake deletes the outputs of a failed job, and these journals remain.
        for target in wanted:
            shutil.rmtree(target.folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # not empty: it also has samples of another protocol
                target.folder.parent.rmdir()
    print(f"generate: {len(wanted)} tables in {time.monotonic() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    run_command(main)
