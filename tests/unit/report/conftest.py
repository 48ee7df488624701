from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from synthetic_results import RUNS, write_run

from contracts import tables


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two small runs, complete, which a test may damage."""
    for name, ceiling in RUNS.items():
        write_run(tmp_path / "demo", name, ceiling, steps=(0, 20, 40), problems=6, repeats=2)
    return tmp_path / "demo"


@pytest.fixture
def rewrite() -> Callable[[Path, pa.Schema, Callable[[pd.DataFrame], pd.DataFrame]], None]:
    """Change a stored table in place."""

    def change(path: Path, schema: pa.Schema, edit: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        frame = edit(tables.read(path, schema).to_pandas())
        tables.write(pa.Table.from_pandas(frame, schema, preserve_index=False), schema, path)

    return change
