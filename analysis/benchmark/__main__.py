"""The page of a benchmark from stored results; `crosszero benchmark` makes these first.

python -m analysis.benchmark --run RUN … --seeds 0 1 2 --scale demo --results results/demo --output FOLDER
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from analysis.benchmark import figures, own_speed, speed_options, trainings
from analysis.benchmark.bare_command import WHOLE
from analysis.benchmark.groups import Group, common_accuracy, groups_of
from analysis.pages import page, table_texts
from analysis.pages.table_texts import Table, interval_columns, interval_text, points
from analysis.statistics import mean_intervals
from contracts.run_file import SCALES
from eval.statistics import Estimate
from system import durable
from system.command_line import argument_parser
from system.errors import run_command


def costs_table(groups: Sequence[Group], accuracy: float, price: float | None) -> Table:
    """One row per group: what its trainings cost, with 95 % intervals over seeds where there are several.

    Args:
        groups: of trainings.
        accuracy: to reach, a fraction.
        price: of an hour of a GPU, or of the machine where there is none.
    """
    rows, texts = [], []
    for group in groups:
        reached, whole = group.seconds_to(accuracy), [one.seconds for one in group.trainings]
        estimates = {
            "seconds_to_accuracy": reached, "start_up_seconds": group.start_up,
            "seconds_of_step": group.seconds_of_step, "sampled_tokens_per_second_of_sampling": group.rate("sampling"),
            "sampled_tokens_per_second_of_update": group.rate("update"), "padding_share": group.padding,
            "host_memory_gb": group.host_memory, "gpu_memory_gb": group.gpu_memory,
        }  # fmt: skip
        paid = Estimate(*(price * group.payers * value / 3600 for value in reached)) if reached and price else None
        mean_whole = sum(whole) / len(whole)
        row = {"run": group.name, "seeds": len(group.trainings), "seconds": mean_whole}
        rows.append(row | interval_columns(estimates | {"cost_to_accuracy": paid}))
        text = {
            "run": group.name,
            "seeds": str(len(group.trainings)),
            f"minutes to {100 * accuracy:.1f} %": _text(reached, lambda value: f"{value / 60:.1f}"),
            "whole (min)": f"{mean_whole / 60:.1f}",
            "start-up (s)": _text(group.start_up, "{:.0f}".format),
            "a step (s)": _text(group.seconds_of_step, "{:.2f}".format),
            "tokens/s, sampling": _text(group.rate("sampling"), "{:,.0f}".format),
            "tokens/s, update": _text(group.rate("update"), "{:,.0f}".format),
            "padding (%)": _text(group.padding, lambda value: f"{100 * value:.0f}"),
            "memory (GB)": _text(group.host_memory, "{:.1f}".format),
        }
        if any(other.gpu_memory for other in groups):
            text["GPU memory (GB)"] = _text(group.gpu_memory, "{:.1f}".format)
        if price:
            text[f"cost to {100 * accuracy:.1f} %"] = _text(paid, _money)
        texts.append(text)
    return Table("costs", pd.DataFrame(rows), pd.DataFrame(texts))


def _text(estimate: Estimate | None, form: Callable[[float], str]) -> str:
    if estimate is None:
        return "–"
    return form(estimate.value) if math.isinf(estimate.high) else interval_text(estimate, form)


def _money(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}"


def summary_sentences(groups: Sequence[Group], accuracy: float) -> list[str]:
    """What the benchmark shows, for the top of its page."""
    target = f"{100 * accuracy:.1f} %"
    reached = {group.name: estimate for group in groups if (estimate := group.seconds_to(accuracy))}
    begun = [group.name for group in groups if group.begins_with(accuracy)]
    missed = [group.name for group in groups if group.name not in {*reached, *begun}]
    resumed = [f"{group.name}, seed {one.seed}" for group in groups for one in group.trainings if one.resumed]
    text = _comparison(reached, target) if reached else []
    if missed:
        text.append(f"Not all seeds reach {target}: {'; '.join(missed)}.")
    if begun:
        text.append(f"The base model has {target} already: {'; '.join(begun)}. Choose a higher --accuracy.")
    if resumed:
        text.append(f"Started up more than once, and all of it counts: {'; '.join(resumed)}.")
    if any(len(group.trainings) == 1 for group in groups):
        text.append("One seed of a run: its time has no interval. Add --seeds 0,1,2,3,4.")
    return text


def _comparison(reached: Mapping[str, Estimate], target: str) -> list[str]:
    """The times of those that reach the target, and from which of them the fastest cannot be told."""
    first, *others = order = sorted(reached, key=lambda name: reached[name].value)
    times = "; ".join(f"{name} {reached[name].value / 60:.1f}" for name in order)
    return [
        f"Minutes of training until {target} of the held-out problems are right: {times}.",
        *(
            f"Whether {first} is faster than {name} cannot be told: the interval of the difference has 0."
            for name in others
            if -math.inf < mean_intervals.difference(reached[first], reached[name]).low <= 0
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
        one = group.trainings[0]
        versions = [f"{name} {one.packages[name]}" for name in (one.framework, "torch", "vllm") if name in one.packages]
        commits = sorted({training.commit[:8] for training in group.trainings})
        rows.append(
            {
                "run": group.name, "framework": ", ".join(versions), "base model": one.model,
                "completions a step": f"{one.completions_per_step:g}", "steps": str(one.steps), "machine": one.hardware,
                "commit": ", ".join(commits),
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
    parser.add_argument("--accuracy", type=float, help="to reach, in percent; by default what all trainings reach")
    parser.add_argument("--price", type=float, help="of an hour of a GPU, or of the machine where there is none")
    parser.add_argument("--output", type=Path, required=True, help="folder for page, tables, figures, benchmark.json")
    arguments = parser.parse_args()
    own = trainings.read_trainings(arguments.results, arguments.run, arguments.seeds, arguments.scale)
    every = trainings.put_together(own, [one for file in arguments.others for one in trainings.read(file)])
    trainings.write(own, arguments.output / "benchmark.json")
    groups = groups_of(every)
    accuracy = common_accuracy(every) if arguments.accuracy is None else arguments.accuracy / 100
    table, sentences = costs_table(groups, accuracy, arguments.price), summary_sentences(groups, accuracy)
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
