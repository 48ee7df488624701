"""Published figures outside of the report's tables: as printed, and each beside what was measured here."""

from __future__ import annotations

import math
import re

import pytest

from analysis.claims import table as claims
from analysis.claims.registry import load_registry
from analysis.reference import DRAWINGS, FIGURES, read_csv
from analysis.report.sections import document_figures, drawings
from tests import needs


def lines(source: str) -> list[str]:
    """Lines of the document that has the words which the source's first claim quotes."""
    quote = next(claim["quotes"][0] for claim in load_registry()["claims"] if claim["source"] == source)
    texts = [file.read_text(encoding="utf-8") for file in needs.DOCUMENTS.glob("*.txt")]
    (text,) = [text for text in texts if quote in text]
    return text.split("\n")


@needs.documents
def test_every_figure_stands_in_words_of_its_document() -> None:
    for row in read_csv(FIGURES, text=True).to_dict("records"):
        (number,) = re.findall(r"\d[\d./e-]*", row["published"])
        assert any(row["words"] in line for line in lines(row["source"])), row["words"]
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", row["words"]), (number, row["words"])


@needs.documents
def test_the_drawings_are_those_of_the_document() -> None:
    printed = lines("rewards")
    table = read_csv(DRAWINGS, text=True).fillna("-")
    models = list(table.columns[2:])
    assert printed[117].split()[1:] == models and len(models) == 13
    for row in table.to_dict("records"):
        assert printed[int(row["line"]) - 1].split()[-13:] == [row[model] for model in models]
    assert table["line"].tolist() == [str(line) for line in range(119, 142)]


def test_a_cell_is_a_share_of_its_draws() -> None:
    assert drawings.success_share("3/16") == 3 / 16
    assert math.isnan(drawings.success_share(""))
    table = drawings.drawings_table()
    shares = table.data.drop(columns="prompt")
    assert ((shares >= 0) & (shares <= 1) | shares.isna()).all(axis=None)
    mean = table.display.set_index("prompt").loc[drawings.ALL_PROMPTS, "qwen2.5-1.5b-instruct"]
    assert mean.startswith("11.1 [0.0, ")  # one of nine prompts, always


@pytest.mark.slow
def test_a_figure_has_what_was_measured_for_its_claim() -> None:
    table = document_figures.figures_table(claims.table([], "demo"))
    known = {one["id"] for one in load_registry()["claims"]}
    assert set(table.data["claim"]) - {""} <= known
    row = table.display.set_index("figure").loc["spread of k3 over that of k1"]
    assert row["measured"].startswith("0.0709 [") and row["verdict"] == "supported"
    assert (table.display["verdict"] != "–").sum() == (table.data["claim"] != "").sum()
