"""What is to be generated for one checkpoint on one benchmark, and what of it is stored already."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import provenance, tables
from eval import protocols, sample_journal


@dataclass(frozen=True)
class Target:
    """The samples to generate for one checkpoint on one benchmark, and everything that decides what they are."""

    step: int
    checkpoint: Path
    benchmark: str
    run: str
    protocol: protocols.Protocol
    problems: pa.Table
    repeats: int
    settings: dict[str, Any]
    folder: Path  # of the journal
    output: Path  # the sample table
    subset: dict[str, Any] | None = None  # the record of a part of the benchmark

    def expected(self) -> list[sample_journal.Key]:
        """Every (problem_id, repeat) that is requested."""
        return sample_journal.expected(self.problems["problem_id"].to_pylist(), self.repeats)

    def identity(self) -> dict[str, Any]:
        """What distinguishes these samples from others, for the provenance."""
        protocol = self.protocol
        return {
            "run": self.run,
            "step": self.step,
            "benchmark": self.benchmark,
            "protocol": {
                "name": protocol.name,
                "source": protocol.source,
                "extraction": protocol.extraction,
                **protocol.decoding(),
            },
            "repeats": self.repeats,
            "subset": self.subset,
            "settings_sha256": sample_journal.settings_hash(self.settings),
        }

    def is_finished(self) -> bool:
        """Whether the output exists, made under the same settings, however it is graded, and complete."""
        if not self.output.is_file():
            return False
        record, wanted = provenance.read(self.output), self.identity()
        if record.get("protocol", {}).get("name") != wanted.pop("protocol")["name"]:  # its values are in the settings
            return False
        if any(record.get(key) != value for key, value in wanted.items()):
            return False
        return len(tables.read(self.output, tables.SAMPLE)) == len(self.expected())

    def samples_of_smaller_output(self) -> dict[sample_journal.Key, dict[str, Any]]:
        """The samples of an output with fewer repeats or problems, made under the same settings; none without one."""
        record, wanted = provenance.read(self.output), self.identity()
        same = all(record.get(key) == wanted[key] for key in ("run", "step", "benchmark", "settings_sha256"))
        fewer = record.get("repeats", self.repeats) < self.repeats or record.get("subset") != self.subset
        if not (same and fewer and self.output.is_file()):
            return {}
        rows = {(row["problem_id"], row["repeat"]): row for row in tables.read(self.output, tables.SAMPLE).to_pylist()}
        return {key: rows[key] for key in self.expected() if key in rows}

    def stored_samples(self) -> dict[sample_journal.Key, dict[str, Any]]:
        """The samples that need not be generated."""
        return self.samples_of_smaller_output() | sample_journal.read(self.folder)
