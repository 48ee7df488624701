"""The trainings of `snakemake study_waterfall`, from one framework's to another's, of waterfall.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from system.yaml_files import read_yaml

FEWEST = 5  # training seeds


class Stage(NamedTuple):
    """A training that takes less from the recorded one than the stage before it.

    Attributes:
        name: on the command line and of its folder.
        run: that trains.
        released: what it does not take from the recording.
        part: what its difference from the stage before it shows.
    """

    name: str
    run: str
    released: tuple[str, ...]
    part: str


CONTENT = read_yaml(Path(__file__).with_name("waterfall.yaml"))
FROM, TO = CONTENT["from"], CONTENT["to"]
STAGES = tuple(
    Stage(row["name"], row["run"], tuple(row.get("released", ())), row.get("part", "")) for row in CONTENT["stages"]
)
RECORDED, *REPLAYED = STAGES
