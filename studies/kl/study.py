"""Estimators of the KL term: their values, and the gradients that training follows: `snakemake study_kl`.

    crosszero study kl study --output FOLDER

A page with two figures and its tables; half a minute on one core, and nothing is trained.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.lines import Line2D

from analysis.claims.registry import load_registry
from analysis.claims.table import citation, rule_text
from analysis.claims.verdicts import finding
from analysis.pages import figure_style, page, table_texts
from analysis.pages.table_texts import Table, percent
from studies.kl.estimator_values import ESTIMATORS, Values, of_normals
from studies.kl.gradients import PLACES, Gradient, policies, study
from system import durable
from system.command_line import argument_parser
from system.errors import run_command

SHIFTS = (0.1, 1.0)  # the GSM8K notes' case, true KL 0.005, and Schulman's second, 0.5
ARMS, VOCABULARY, LENGTH, DRAWS = 10, 4, 6, 200_000
SAMPLERS = {"on-policy": False, "off-policy": True}


def values_table(rows: list[Values]) -> Table:
    """Bias and spread of the values, in units of the true KL."""
    columns = ["true KL", "estimator", "exact bias", "bias", "low", "high", "spread"]
    data = pd.DataFrame(
        [(one.shift**2 / 2, one.estimator, one.exact_bias, *one.bias, one.spread) for one in rows], columns=columns
    )
    of_k1 = data["spread"] / data.groupby("true KL")["spread"].transform("first")
    intervals = [[percent(part, 2) for part in one.bias] for one in rows]
    display = pd.DataFrame(
        {
            "true KL": data["true KL"].map("{:.3g}".format),
            "estimator": data["estimator"],
            "relative bias, %": [f"{value} [{low}, {high}]" for value, low, high in intervals],
            "exact, %": data["exact bias"].map(lambda value: percent(value, 2)),
            "spread / true KL": data["spread"].map("{:.2f}".format),
            "spread / k1's": of_k1.map("{:.2f}".format),
        }
    )
    return Table("kl_values", data.assign(spread_of_k1=of_k1), display)


def gradients_table(by_case: dict[tuple[str, str], list[Gradient]]) -> Table:
    """Bias, direction and spread of the gradients, in units of the true gradient's length.

    Args:
        by_case: the study of each model and sampler.
    """
    data = pd.DataFrame(
        [
            {"model": model, "sampler": sampler, **one._asdict()}
            for (model, sampler), rows in by_case.items()
            for one in rows
        ]
    )
    display = data.assign(estimator=data["estimator"] + " " + data["kl_in"]).drop(columns=["kl_in", "error"])
    display["bias"] = [
        f"{b:.3f} ± {2 * e:.3f}" if e else f"{b:.3f}" for b, e in zip(data["bias"], data["error"], strict=True)
    ]
    display["cosine"] = data["cosine"].map(lambda value: "no direction" if pd.isna(value) else f"{value:.3f}")
    display["spread"] = data["spread"].map("{:.2f}".format)
    return Table("kl_gradients", data, display)


def claims_table() -> Table:
    """What the document says of the estimators' values, the rule and the verdict."""
    rows = []
    for claim in load_registry()["claims"]:
        if any(rule["measure"].startswith("kl_") for rule in claim["rules"]):
            judged = finding(claim, {}, claim["scale"])
            rows.append(
                {"claim": claim["claim"], "where": f"{claim['source']}, {citation(claim)}",
                 "claimed": "; ".join(map(rule_text, claim["rules"])), "measured": judged.evidence,
                 "verdict": judged.verdict}
            )  # fmt: skip
    frame = pd.DataFrame(rows)
    return Table("kl_claims", frame, frame)


def draw(values: Table, gradients: Table, folder: Path) -> dict[str, str]:
    """Both figures as SVG, which are written to the folder, too."""
    figure_style.set_style()
    styles = figure_style.run_styles(ESTIMATORS)
    figure, axes = figure_style.panels(2, 2, 2.2, sharex=False)
    for panel, (true, rows) in zip(axes, values.data.groupby("true KL"), strict=True):
        panel.errorbar(
            rows["spread"], 100 * rows["bias"], 100 * (rows["high"] - rows["low"]) / 2, fmt="none",
            ecolor=figure_style.FAINT,
        )  # fmt: skip
        for row in rows.to_dict("records"):
            style = styles[row["estimator"]]
            panel.plot(row["spread"], 100 * row["bias"], style.marker, color=style.colour)
        panel.set(title=f"true KL {true:.3g}", xlabel="spread / true KL", ylabel="relative bias, %")
        panel.set_xlim(0, 1.1 * rows["spread"].max())
    figure_style.legend(figure, [figure_style.run_handle(styles[name]) for name in ESTIMATORS], ESTIMATORS)
    drawings = {"kl_values": figure_style.save(figure, folder, "kl_values")}

    groups = list(gradients.data.groupby(["model", "sampler"], sort=False))
    figure, axes = figure_style.panels(len(groups), 2, 2.4, sharex=True, sharey=True)
    shapes = dict(zip(PLACES, figure_style.MARKERS, strict=False))
    for panel, ((model, sampler), rows) in zip(axes, groups, strict=True):
        for row in rows.to_dict("records"):
            panel.plot(row["spread"], row["bias"], shapes[row["kl_in"]], color=styles[row["estimator"]].colour)
        panel.set(title=f"{model}, {sampler}", xlabel="spread of one completion", ylabel="bias")
    handles = [Line2D([], [], color=styles[name].colour) for name in ESTIMATORS]
    handles += [Line2D([], [], color=figure_style.INK, marker=shape, linestyle="none") for shape in shapes.values()]
    figure_style.legend(figure, handles, [*ESTIMATORS, *shapes])
    return drawings | {"kl_gradients": figure_style.save(figure, folder, "kl_gradients")}


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    folder = parser.parse_args().output
    values = values_table([one for shift in SHIFTS for one in of_normals(shift)])
    studied = {}
    for sampler, off_policy in SAMPLERS.items():
        studied["bandit, exact", sampler] = study(policies(ARMS, off_policy), 1)
        studied["language model, Monte Carlo", sampler] = study(policies(VOCABULARY, off_policy), LENGTH, DRAWS)
    gradients, claims = gradients_table(studied), claims_table()
    for table in (values, gradients, claims):
        table_texts.write(table, folder)
    figures = {name: page.inline_svg(svg, name, name) for name, svg in draw(values, gradients, folder).items()}
    text = page.environment(Path(__file__).parent).get_template("study_kl.html.j2").render(
        css=page.css(), figures=figures, arms=ARMS, vocabulary=VOCABULARY, length=LENGTH, draws=DRAWS,
        values=page.plain(values.display), gradients=page.plain(gradients.display), claims=page.plain(claims.display),
    )  # fmt: skip
    durable.write_text(folder / "index.html", text)
    print(folder / "index.html")


if __name__ == "__main__":
    run_command(main)
