"""How pip installs this project: only as a link to its folder, since the workflow, the locks and the results are there.

setuptools does the work; what it would do beside that is refused with one sentence.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from setuptools.build_meta import (  # noqa: F401, what pip calls for `pip install -e .`
    build_editable,
    get_requires_for_build_editable,
    prepare_metadata_for_build_editable,
)


def get_requires_for_build_wheel(config_settings: object = None) -> NoReturn:
    """Refuse what pip asks first for a wheel."""
    sys.exit(
        "CrossZero is no wheel: it works in its folder, where the workflow, the recipes, the locks and the results "
        "are. Clone it and call ./crosszero there, or put it into your own environment with `pip install -e .`"
    )


build_wheel = get_requires_for_build_sdist = build_sdist = get_requires_for_build_wheel
