"""The page of a benchmark from stored results; `crosszero benchmark` makes these first.

python -m analysis.benchmark --run RUN … --seeds 0 1 2 --scale demo --results results/demo --output FOLDER
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from analysis.benchmark import figures, trainings
from analysis.benchmark.groups import Group, common_accuracy, groups_of
from analysis.pages import page, table_texts
from analysis.pages.table_texts import Table, interval_columns, interval_text
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
            "sampled_tokens_per_second_of_update": group.rate("update"), "host_memory_gb": group.host_memory,
            "gpu_memory_gb": group.gpu_memory,
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
            "memory (GB)": _text(group.host_memory, "{:.1f}".format),
        }
        if any(other.gpu_memory for other in groups):
            text["GPU memory (GB)"] = _text(group.gpu_memory, "{:.1f}".format)
        if price:
            text[f"cost to {100 * accuracy:.1f} %"] = _text(paid, "{:.3g}".format)
        texts.append(text)
    return Table("costs", pd.DataFrame(rows), pd.DataFrame(texts))


def _text(estimate: Estimate | None, form: Callable[[float], str]) -> str:
    if estimate is None:
        return "–"
    return form(estimate.value) if math.isinf(estimate.high) else interval_text(estimate, form)


def summary_sentences(groups: Sequence[Group], accuracy: float) -> list[str]:
    """What the benchmark shows, for the top of its page."""
    reached = {group.name: estimate for group in groups if (estimate := group.seconds_to(accuracy))}
    if not reached:
        return [f"No run reaches {100 * accuracy:.1f} % with all its seeds."]
    order = sorted(reached, key=lambda name: reached[name].value)
    times = ", ".join(f"{name} {reached[name].value / 60:.1f}" for name in order)
    text = [f"Minutes of training until {100 * accuracy:.1f} % of the held-out problems are right: {times}."]
    first, *others = order
    for name in others:
        if -math.inf < mean_intervals.difference(reached[first], reached[name]).low <= 0:
            text.append(f"Whether {first} is faster than {name} cannot be told: the interval of the difference has 0.")
    if any(len(group.trainings) == 1 for group in groups):
        text.append("One seed of a run: its time has no interval. Add --seeds 0,1,2,3,4.")
    return text


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
                "completions a step": str(one.completions_per_step), "steps": str(one.steps), "machine": one.hardware,
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
    accuracy = arguments.accuracy / 100 if arguments.accuracy else common_accuracy(every)
    table, sentences = costs_table(groups, accuracy, arguments.price), summary_sentences(groups, accuracy)
    table_texts.write(table, arguments.output)
    drawn = figures.plot(groups, accuracy, arguments.output)
    text = page.environment().get_template("benchmark.html.j2").render(
        css=page.css(), scale=arguments.scale, sentences=sentences, accuracy=accuracy, price=arguments.price,
        figures={name: page.inline_svg(svg, name, name) for name, svg in drawn.items()},
        table=page.plain(table.display), versions=page.plain(versions_table(groups)),
    )  # fmt: skip
    durable.write_text(arguments.output / "index.html", text)
    print("\n".join(sentences))
    print(table_texts.markdown(table.display))
    print(f"benchmark: {arguments.output / 'index.html'}")


if __name__ == "__main__":
    run_command(main)
