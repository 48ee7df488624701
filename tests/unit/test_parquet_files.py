"""Tables on disk: damage is noticed, and never read as another table."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from contracts import tables
from system.errors import UserError


def table() -> pa.Table:
    draw = random.Random(0)
    row = dict.fromkeys(tables.GRADED.names) | {"run": "r/x/seed-0", "step": 0, "protocol": "demo"}
    rows = [
        row | {"problem_id": f"p{n}", "repeat": n % 4, "completion": str(draw.random()), "verdict": draw.choice("ab")}
        for n in range(200)
    ]
    return pa.Table.from_pylist(rows, tables.GRADED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_or_a_cut_changes_nothing_or_is_refused(tmp_path: Path, seed: int) -> None:
    file, draw, refused = tmp_path / "t.parquet", random.Random(seed), 0
    tables.write(table(), tables.GRADED, file)
    whole = file.read_bytes()
    for trial in range(200):
        damaged = bytearray(whole)
        offset = draw.randrange(len(whole))
        if trial % 4:
            damaged[offset] ^= 1 << draw.randrange(8)
        else:
            del damaged[offset:]
        file.write_bytes(damaged)
        try:
            table_read = tables.read(file, tables.GRADED)
        except UserError:
            refused += 1
        else:
            assert table_read.equals(table()), (trial, offset)
    assert refused > 100
