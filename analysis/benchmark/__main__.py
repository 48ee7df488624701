"""The page of a benchmark from stored results; `crosszero benchmark` makes these first.

python -m analysis.benchmark --run RUN … --seeds 0 1 2 --scale demo --results results/demo --output FOLDER
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from analysis.benchmark import exchange, figures, own_speed, request, speed_options, trainings
from analysis.benchmark.bare_command import WHOLE
from analysis.benchmark.groups import Group, common_accuracy, groups_of
from analysis.benchmark.trainings import Training
from analysis.pages import page, table_texts
from analysis.pages.table_texts import Table, interval_columns, interval_text, points
from analysis.statistics import mean_intervals
from contracts.run_file import SCALES
from eval.statistics import Estimate
from system import durable
from system.command_line import argument_parser
from system.errors import run_command

UNKNOWN = "–"


def hourly(amounts: Mapping[str, float], groups: Sequence[Group], own: Sequence[Training]) -> dict[str, float]:
    """By group, the price of an hour where it is known.

    That without a name is for machines and GPUs as here. Else a name that is in a GPU's counts before one that is in
    the machine's, and of several the longest.

    Args:
        amounts: see request.prices.
        groups: to be paid for.
        own: the trainings made here.
    """
    here, prices = {(one.machine, frozenset(one.gpus)) for one in own}, dict[str, float]()
    longest_first = sorted(filter(None, amounts), key=len, reverse=True)
    for group in groups:
        one = group.trainings[0]
        names = [
            name for text in (" ".join(one.gpus), one.machine) for name in longest_first if name in text.casefold()
        ]
        if "" in amounts and (one.machine, frozenset(one.gpus)) in here:
            names = [""]
        if names:
            prices[group.name] = amounts[names[0]]
    return prices


def costs_table(groups: Sequence[Group], accuracy: float, prices: Mapping[str, float]) -> Table:
    """One row per group: what its trainings cost, with 95 % intervals over seeds where there are several.

    Args:
        groups: of trainings.
        accuracy: to reach, a fraction.
        prices: by group, of an hour of a GPU, or of the machine where there is none.
    """
    target = f"{100 * accuracy:.1f} %"
    rows, texts = [], []
    for group in groups:
        reached, price = group.seconds_to(accuracy), prices.get(group.name)
        count = sum(one.seconds_to(accuracy) is not None for one in group.trainings)
        paid = Estimate(*(price * group.payers * value / 3600 for value in reached)) if reached and price else None
        cells: list[tuple[str, str, Estimate | None, Callable[[float], str]]] = [
            ("seconds_to_accuracy", f"minutes to {target}", reached, _minutes),
            ("seconds", "whole (min)", group.seconds, _minutes),
            ("start_up_seconds", "start-up (s)", group.start_up, "{:.1f}".format),
            ("seconds_of_step", "a step (s)", group.seconds_of_step, _seconds),
            *(
                (f"sampled_tokens_per_second_of_{column}", f"tokens/s, {short}", group.rate(kind), "{:,.0f}".format)
                for kind, short in (("sampling", "sampling"), ("log-probabilities", "log-probs"), ("update", "update"))
                for column in [kind.replace("-", "_")]
            ),
            ("padding_share", "padding (%)", group.mean_of("padding_share"), _percent),
            ("host_memory_gb", "memory (GB)", group.mean_of("host_memory_gb"), "{:.1f}".format),
            ("gpu_memory_gb", "GPU memory (GB)", group.mean_of("gpu_memory_gb"), "{:.1f}".format),
            ("gpu_utilisation", "GPU busy (%)", group.mean_of("gpu_utilisation"), _percent),
            ("cost_to_accuracy", f"cost to {target}", paid, _money),
        ]
        row = {
            "run": group.name, "machine": group.hardware, "seeds": len(group.trainings), "reached": count,
            "accuracy": accuracy, "price": price,
        }  # fmt: skip
        rows.append(row | interval_columns({column: estimate for column, _, estimate, _ in cells}))
        text = {"run": group.name, "seeds": f"{len(group.trainings)}"}
        for _, header, estimate, form in cells:
            part = group.part_text(accuracy) if estimate and header.endswith(target) else ""
            text[header] = ", ".join(filter(None, [_text(estimate, form), part]))
        texts.append(text)
    display = pd.DataFrame(texts)
    return Table("costs", pd.DataFrame(rows), display.loc[:, (display != UNKNOWN).any()])


def _text(estimate: Estimate | None, form: Callable[[float], str]) -> str:
    if estimate is None:
        return UNKNOWN
    return form(estimate.value) if math.isinf(estimate.high) else interval_text(estimate, form)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def _money(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}"


def summary_sentences(groups: Sequence[Group], accuracy: float) -> list[str]:
    """What the benchmark shows and what was trained, for the top of its page."""
    target = f"{100 * accuracy:.1f} %"
    reached = {group.name: estimate for group in groups if (estimate := group.seconds_to(accuracy))}
    begun = [group.name for group in groups if group.begins_with(accuracy)]
    missed = [f"{group.name}, seed {one.seed}" for group in groups for one in group.missing(accuracy)]
    each = [(f"{group.name}, seed {one.seed}", one) for group in groups for one in group.trainings]
    resumed = [name for name, one in each if one.resumed]
    stopped = [f"{name} (step {one.steps}: {one.stop_reason})" for name, one in each if one.stop_reason]
    commits = {one.commit for _, one in each}
    parts = {group.name: part for group in groups if (part := group.part_text(accuracy))}
    machines = dict.fromkeys(f"{group.letter} is {group.hardware}" for group in groups if group.letter)
    text = _comparison(reached, parts, target) if reached else []
    steps = [f"{one.name} {one.seconds_of_step.value:.3g} ({one.seconds_of_first_step.value:.3g})" for one in groups]
    unnamed = [f"{one.name} {100 * one.unnamed_share:.1f} %" for one in groups]
    text.append(f"Seconds of a step, and of the first, which warms up: {'; '.join(steps)}.")
    text.append(f"Of a training's time no timer names: {'; '.join(unnamed)}.")
    text.append(_trained([one for _, one in each]))
    if len(stopped) == len(each):
        text.append("No training has an accuracy: all were stopped at a sign of collapse.")
    elif missed:
        text.append(f"These do not reach {target}, and count in no time until then: {'; '.join(missed)}.")
    if stopped:
        text.append(f"Stopped at a sign of collapse, and not evaluated: {'; '.join(stopped)}.")
    if begun:
        text.append(f"The base model has {target} already: {'; '.join(begun)}. Choose a higher --accuracy.")
    if resumed:
        text.append(f"Started up more than once, which counts; steps that were lost do not: {'; '.join(resumed)}.")
    if any(len(group.trainings) == 1 for group in groups):
        text.append("One seed of a run: its time has no interval. Add --seeds 0,1,2,3,4.")
    if len(commits) > 1:
        text.append(f"The trainings were made by {len(commits)} commits of CrossZero, named below.")
    if machines:
        text[0] += f" {'; '.join(machines)}."
    return text


def _trained(trainings: Sequence[Training]) -> str:
    """What all trainings are, as far as they are alike."""

    def each(values: Iterable[object]) -> str:
        return " or ".join(dict.fromkeys(map(str, values)))

    lengths = sorted(one.response_tokens for one in trainings if one.response_tokens is not None)
    bounds = " to ".join(dict.fromkeys(f"{length:.0f}" for length in [*lengths[:1], *lengths[-1:]]))
    tokens = f" of {bounds} tokens on average" if bounds else ""
    return (
        f"Each training: {each(one.algorithm.upper() for one in trainings)} from the base model "
        f"{each(one.model for one in trainings)}, {each(one.steps for one in trainings)} steps of "
        f"{each(f'{one.completions_per_step:g}' for one in trainings)} completions{tokens}, which each framework "
        f"samples itself; evaluated on {', '.join(trainings[0].benchmarks)}."
    )


def _comparison(reached: Mapping[str, Estimate], parts: Mapping[str, str], target: str) -> list[str]:
    """The times until the target, and which of them cannot be told from the fastest, if all seeds reach it."""
    order = sorted(reached, key=lambda name: (name in parts, reached[name].value))
    times = [f"{name} {reached[name].value / 60:.1f}" for name in order]
    texts = [
        f"{time} with {parts[name]} seeds" if name in parts else time for name, time in zip(order, times, strict=True)
    ]
    first = order[0]
    return [
        f"Minutes of training until {target} of the held-out problems are right: {'; '.join(texts)}.",
        *(
            f"Whether {first} reaches it faster than {name} cannot be told from these seeds."
            for name in order[1:]
            if name not in parts and not mean_intervals.difference(reached[first], reached[name]).low > 0
        ),
    ]


def share_table(groups: Sequence[Group]) -> Table:
    """What CrossZero adds to each part of a training; no rows where no framework's own command was run."""
    rows, texts = [], []
    for group in groups:
        parts = dict.fromkeys(part for one in group.trainings for part in one.parts)
        for part in parts:
            pairs = [one.parts[part] for one in group.trainings if part in one.parts]
            ours, bare = (sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1))
            share = group.share(part)
            seconds = {"repetitions": len(pairs), "seconds": ours, "seconds_of_own_command": bare}
            rows.append({"run": group.name, "part": part, **seconds, **interval_columns({"share": share})})
            texts.append(
                {
                    "run": group.name,
                    "part": part,
                    "CrossZero (s)": f"{ours:.1f}",
                    "own command (s)": f"{bare:.1f}",
                    "share of the whole (%)": _text(share, points),
                }
            )
    return Table("own_share", pd.DataFrame(rows), pd.DataFrame(texts))


def share_sentences(groups: Sequence[Group]) -> list[str]:
    """CrossZero's share of the time, where it was measured."""
    shares = {group.name: share for group in groups if (share := group.share(WHOLE))}
    if not shares:
        return []
    text = ", ".join(f"{name} {_text(share, points)}" for name, share in shares.items())
    return [f"CrossZero's own share of a training's time in percent, beside the framework's own command: {text}."]


def versions_table(groups: Sequence[Group]) -> pd.DataFrame:
    """What each group ran on and with."""
    rows = []
    for group in groups:
        one = max(group.trainings, key=lambda training: training.steps)  # others were stopped
        versions = [f"{name} {one.packages[name]}" for name in (one.framework, "torch", "vllm") if name in one.packages]
        commits = sorted({training.commit[:8] for training in group.trainings})
        rows.append(
            {
                "run": group.name, "framework": ", ".join(versions), "base model": one.model,
                "completions a step": f"{one.completions_per_step:g}", "steps": str(one.steps),
                "machine": group.hardware, "commit": ", ".join(commits),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--run", nargs="+", required=True, metavar="RUN", help="runs, or variants of them")
    parser.add_argument("--seeds", type=int, nargs="+", required=True, metavar="SEED")
    parser.add_argument("--scale", choices=SCALES, default="demo")
    parser.add_argument("--results", type=Path, required=True, help="the results of this scale, such as results/demo")
    parser.add_argument(
        "--with", dest="others", type=Path, nargs="*", default=[], metavar="JSON", help="benchmark.json of others"
    )
    parser.add_argument(
        "--accuracy", type=float, help="to reach, in percent; by default what all trainings reach that learn"
    )
    parser.add_argument("--price", default="", help="of an hour of a GPU, or of the machine where there is none")
    parser.add_argument("--output", type=Path, required=True, help="folder for page, tables, figures, benchmark.json")
    arguments = parser.parse_args()
    if arguments.accuracy is not None and not 0 < arguments.accuracy <= 100:
        parser.error(f"--accuracy should be above 0 and at most 100, not {arguments.accuracy:g}")
    request.refuse_own_file(arguments.others, arguments.output)
    own = trainings.read_trainings(arguments.results, arguments.run, arguments.seeds, arguments.scale)
    every = exchange.put_together(own, *map(exchange.read, arguments.others))
    exchange.write(own, arguments.output / request.FILE)
    groups = groups_of(every)
    accuracy = common_accuracy(every) if arguments.accuracy is None else arguments.accuracy / 100
    prices = hourly(request.prices(arguments.price), groups, own)
    table, sentences = costs_table(groups, accuracy, prices), summary_sentences(groups, accuracy)
    if arguments.accuracy is None:
        sentences.insert(
            1, "That is the highest accuracy which all trainings that learn reach; --accuracy sets another."
        )
    shares, history = share_table(groups), own_speed.read(own_speed.FILE)
    sentences += share_sentences(groups)
    for one in (table, *([shares] if len(shares.data) else [])):
        table_texts.write(one, arguments.output)
    drawn = figures.plot(groups, accuracy, arguments.output)
    if history:
        drawn["own_speed"] = own_speed.plot(history, arguments.output)
    options, guides = speed_options.table(arguments.run, arguments.scale)
    text = page.environment().get_template("benchmark.html.j2").render(
        css=page.css(), scale=arguments.scale, sentences=sentences, accuracy=accuracy, price=arguments.price,
        figures={name: page.inline_svg(svg, name, name) for name, svg in drawn.items()},
        table=page.plain(table.display), versions=page.plain(versions_table(groups)),
        options=page.plain(options), guides=guides, shares=page.plain(shares.display) if len(shares.data) else None,
    )  # fmt: skip
    durable.write_text(arguments.output / "index.html", text)
    print("\n".join(sentences))
    print(table_texts.markdown(table.display))
    print(f"benchmark: {arguments.output / 'index.html'}")


if __name__ == "__main__":
    run_command(main)
