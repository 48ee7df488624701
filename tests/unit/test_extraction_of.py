"""Where an answer without a box is looked for: as asked, else as the record says, else as the protocol says."""

from pathlib import Path

import pyarrow as pa
import pytest

from contracts import provenance, tables
from eval import protocols
from eval.grade import extraction_of
from tests.user_errors import refused


@pytest.mark.parametrize(
    ("chosen", "overrides", "expected"),
    [
        (None, None, protocols.load("qwen-math").extraction),
        (None, {"max_tokens": 9}, protocols.load("qwen-math").extraction),
        (None, {"extraction": "answer-line"}, "answer-line"),
        ("none", {"extraction": "answer-line"}, "none"),
    ],
)
def test_what_a_run_overrides_is_used(
    tmp_path: Path, chosen: str | None, overrides: dict[str, object] | None, expected: str
) -> None:
    path = tmp_path / "math500.parquet"
    row = dict.fromkeys(tables.SAMPLE.names) | {"protocol": "qwen-math"}
    samples = pa.Table.from_pylist([row], tables.SAMPLE)
    if overrides is not None:
        provenance.write(path, overrides=overrides)
    assert extraction_of(samples, path, chosen) == expected


def test_imported_samples_need_a_rule(tmp_path: Path) -> None:
    row = dict.fromkeys(tables.SAMPLE.names) | {"protocol": "imported:qwen-math"}
    with refused("missing-extraction"):
        extraction_of(pa.Table.from_pylist([row], tables.SAMPLE), tmp_path / "a.parquet", None)
