"""The table of claims: where each stands, the rule, what was measured, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from analysis.claims.heldout_measures import heldout_best_step
from analysis.claims.registry import Claim, Rule, load_registry, runs_of
from analysis.claims.verdicts import (
    CANNOT_TELL,
    CONTRADICTED,
    NOT_MEASURED,
    SUPPORTED,
    Finding,
    finding,
    number_text,
    printed_finding,
    runs_by_name,
)
from analysis.pages.table_texts import Table
from analysis.results import RunResults


def rule_text(rule: Rule) -> str:
    """The limits of a rule as text."""
    low, high = (number_text(rule[key]) if key in rule else "" for key in ("at_least", "at_most"))
    if low and high:
        return low if low == high else f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}" if high else "–"


def citation(claim: Claim) -> str:
    """Where a claim stands in its source: the section, and the source's own words."""
    section = claim["section"] if claim["section"].startswith("line") else f"section {claim['section']}"
    return ": ".join([section, *(f"“{quote}”" for quote in claim.get("quotes", ())[:1])])


def sources() -> dict[str, dict[str, str]]:
    """What claims are taken from, by name: the title, and where known the address."""
    titles: dict[str, dict[str, str]] = load_registry()["sources"]
    return titles


def table(runs: Iterable[RunResults], scale: str) -> Table:
    """A row for each claim.

    Args:
        runs: the stored results.
        scale: theirs.
    """
    known, rows, text_rows = runs_by_name(runs), [], []
    for claim in load_registry()["claims"]:
        measured, printed = finding(claim, known, scale), printed_finding(claim)
        rules = "; ".join(map(rule_text, claim["rules"]))
        named = [claim["source"], *claim.get("upstream", ())]
        rows.append(
            {
                "id": claim["id"], "claim": claim["claim"], "source": claim["source"], "section": claim["section"],
                "quotes": " … ".join(claim.get("quotes", ())),
                "upstream": " ".join(named[1:]),
                "addresses": " ".join(url for name in named if (url := sources()[name].get("url"))),
                "decided_by": claim["decided_by"], "scale": claim["scale"], "rule": rules,
                "measured": measured.evidence, "verdict": measured.verdict,
                "printed": printed.evidence if printed else "",
                "printed_verdict": printed.verdict if printed else "",
            }
        )  # fmt: skip
        text_rows.append(
            {
                "claim": claim["claim"],
                "source": f"{claim['source']}, {citation(claim)}",
                "decided by": claim["decided_by"],
                "claimed": rules,
                "measured": measured.evidence,
                "verdict": measured.verdict,
                "the source's own table": f"{printed.verdict}: {printed.evidence}" if printed else "–",
            }
        )
    return Table("claims", pd.DataFrame(rows), pd.DataFrame(text_rows))


def best_checkpoint_claims(runs: Iterable[RunResults]) -> list[tuple[str, str, Finding]]:
    """The claims on a best checkpoint of these runs: the claim, its source, and the verdict whatever their scale is."""
    known, findings = runs_by_name(runs), []
    for claim in load_registry()["claims"]:
        needed = {name for rule in claim["rules"] for name in runs_of(rule)}
        if needed <= known.keys() and any(rule["measure"] == heldout_best_step.__name__ for rule in claim["rules"]):
            findings.append(
                (claim["claim"], sources()[claim["source"]]["title"], finding(claim, known, claim["scale"]))
            )
    return findings


def verdict_counts(claims: Table) -> str:
    """How many claims have each verdict."""
    counts = claims.data["verdict"].value_counts()
    verdicts = (SUPPORTED, CONTRADICTED, CANNOT_TELL, NOT_MEASURED)
    return f"{len(claims.data)} claims: {', '.join(f'{counts.get(verdict, 0)} {verdict}' for verdict in verdicts)}"
