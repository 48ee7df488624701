"""Signs that a training run is collapsing, from its log alone: the kind, the step and the evidence.

`signs` reads a whole log; `Watch` reads the same log step by step while training runs. Both give the same signs.

A sign depends on means over WINDOW steps, so that one bad batch is no sign. These are compared with the run's own best
window so far, so that a run that begins badly (a base model that never stops, or never keeps the format) is not
mistaken for one that gets worse. The numbers in the evidence are these means.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

WINDOW = 5  # steps
RISE = 0.25  # increase of a share of completions above its lowest window
CUT = 0.5  # share of completions truncated at the limit, from which length is at the cap
CAP = 0.9  # of the response limit: a mean length above it is at the cap, if the truncated share is not reported
SILENT = 0.95  # share of groups without a signal
SOLVED = 0.95  # accuracy above which a lack of signal is success
KL, KL_TIMES = 1.0, 5.0  # nats per token; and times the mean before
ENTROPY, ENTROPY_TIMES = 1.0, 3.0  # nats per token; and times the lowest window before
MISMATCH, MISMATCH_TIMES = 0.05, 3.0  # of probabilities or their logarithms; and times the lowest window before
LOST = 0.5  # of the best window's accuracy
LOST_FROM = 0.1  # an accuracy below this cannot be lost

# The columns by which each kind of collapse is seen, any of them
SEEN_BY = {
    "length at the cap": ("truncated_rate",), "format errors": ("format_error_rate",), "accuracy lost": ("accuracy",),
    "KL": ("kl",), "entropy": ("entropy",),
}  # fmt: skip
GRAVE = ("not a number", "length at the cap", "format errors", "accuracy lost", "KL", "entropy")  # worth stopping for

Row = Mapping[str, float | int | None]


@dataclass(frozen=True)
class Sign:
    """One kind of trouble, the step at which it appears, and the numbers that show it."""

    kind: str
    step: int
    evidence: str

    @property
    def grave(self) -> bool:
        """Whether it is better to stop the run."""
        return self.kind in GRAVE


@dataclass
class _Column:
    """Mean of a column's last values; and lowest, highest and mean of the windows that end before these."""

    window: int
    values: deque[float] = field(default_factory=deque)
    recent: deque[float] = field(default_factory=deque)  # means of windows that overlap the last
    now: float = math.nan
    lowest: float = math.inf
    highest: float = -math.inf
    mean: float = math.nan
    before: int = 0  # windows that `lowest`, `highest` and `mean` are of

    def add(self, value: float) -> None:
        self.values.append(value)
        if len(self.values) < self.window:
            return
        if len(self.recent) == self.window:
            earlier = self.recent.popleft()
            self.lowest, self.highest = min(self.lowest, earlier), max(self.highest, earlier)
            self.mean = earlier if not self.before else self.mean + (earlier - self.mean) / (self.before + 1)
            self.before += 1
        self.now = sum(self.values) / self.window
        self.values.popleft()
        self.recent.append(self.now)


@dataclass
class Watch:
    """Reads a training log row by row.

    Args:
        cap: the response limit in tokens, if known.
        window: rows that a sign depends on.
    """

    cap: float | None = None
    window: int = WINDOW
    columns: dict[str, _Column] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)  # kinds that were reported and have not disappeared since

    def add(self, row: Row) -> list[Sign]:
        """The signs that begin with this row: columns of contracts.tables.TRAINING_LOG, of which any may be missing."""
        step = int(row.get("step") or 0)
        evidence_by_kind: dict[str, str] = {}
        not_finite = [name for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)]
        if not_finite:
            evidence_by_kind["not a number"] = f"{', '.join(not_finite)} is NaN or infinite"
        for name, value in row.items():
            if isinstance(value, int | float) and math.isfinite(value):
                size = abs(value) if name == "sampler_mismatch" else value  # OpenRLHF's has a sign
                self.columns.setdefault(name, _Column(self.window)).add(float(size))
        evidence_by_kind |= self._length() | self._rates() | self._spread()
        new = [Sign(kind, step, evidence) for kind, evidence in evidence_by_kind.items() if kind not in self.present]
        self.present = set(evidence_by_kind)
        return new

    def _column(self, name: str) -> _Column:
        return self.columns.get(name, _Column(self.window))

    def _length(self) -> dict[str, str]:
        cut, length = self._column("truncated_rate"), self._column("response_length_mean")
        length_note = f"; the mean response has {length.now:.0f} tokens" if length.now == length.now else ""
        if cut.before:
            if cut.now >= CUT and cut.now - cut.lowest >= RISE:
                return {
                    "length at the cap": f"{cut.now:.0%} of the completions are truncated at the limit, after "
                    f"{cut.lowest:.0%} at best{length_note}"
                }
        elif (
            self.cap and length.before and length.now >= CAP * self.cap > length.now - RISE * self.cap >= length.lowest
        ):
            return {
                "length at the cap": f"the mean response has {length.now:.0f} of at most {self.cap:.0f} tokens, after "
                f"{length.lowest:.0f}"
            }
        return {}

    def _rates(self) -> dict[str, str]:
        evidence_by_kind = {}
        wrong_form = self._column("format_error_rate")
        if wrong_form.before and wrong_form.now - wrong_form.lowest >= RISE:
            evidence_by_kind["format errors"] = (
                f"{wrong_form.now:.0%} of the completions break the format, after {wrong_form.lowest:.0%} at best"
            )
        right = self._column("accuracy")
        if right.before and right.highest >= LOST_FROM and right.now <= LOST * right.highest:
            evidence_by_kind["accuracy lost"] = (
                f"{right.now:.0%} of the answers are right, after {right.highest:.0%} at best"
            )
        silent = self._column("zero_signal_rate")
        if silent.now >= SILENT and not right.now >= SOLVED:
            evidence_by_kind["no signal"] = (
                f"in {silent.now:.0%} of the groups all rewards are equal: nothing is learned from them"
            )
        return evidence_by_kind

    def _spread(self) -> dict[str, str]:
        evidence_by_kind = {}
        kl, entropy = self._column("kl"), self._column("entropy")
        if kl.before and kl.now >= max(KL, KL_TIMES * kl.mean):
            evidence_by_kind["KL"] = (
                f"the KL divergence from the reference is {kl.now:.3g}, after {kl.mean:.3g} on average"
            )
        if entropy.before and entropy.now >= max(ENTROPY, ENTROPY_TIMES * entropy.lowest):
            evidence_by_kind["entropy"] = f"the entropy is {entropy.now:.3g} nats per token, after {entropy.lowest:.3g}"
        apart = self._column("sampler_mismatch")
        if apart.before and apart.now >= max(MISMATCH, MISMATCH_TIMES * apart.lowest):
            evidence_by_kind["sampler mismatch"] = (
                f"the sampler's probabilities are {apart.now:.3g} from the trainer's, after {apart.lowest:.3g} at best"
            )
        return evidence_by_kind


def unseen(rows: Iterable[Row]) -> list[str]:
    """The kinds of collapse that a log cannot show, because none of its rows has what tells them."""
    present = {name for row in rows for name, value in row.items() if value is not None}
    return [kind for kind, columns in SEEN_BY.items() if not present & set(columns)]


def signs(rows: Iterable[Row], cap: float | None = None, window: int = WINDOW) -> list[Sign]:
    """All signs in a training log, in the order of its steps; a sign that disappears and comes back is there twice.

    Args:
        rows: of one stage, in order, with the columns of contracts.tables.TRAINING_LOG, None where not reported.
        cap: the response limit in tokens, if known.
        window: rows that a sign depends on.
    """
    watch = Watch(cap, window)
    return [sign for row in rows for sign in watch.add(row)]
