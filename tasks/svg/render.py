"""Pictures of drawings, by resvg, which gets only what tasks.svg.safe_svg has cleaned, and no fonts of the machine.

Rendering may take long or much memory. Judges run in processes that can be killed (grading.worker_pool); pictures for
pages are made by this module's own command, in a process with limits:

    python -m tasks.svg.render < drawing.svg > picture.png
"""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from system.errors import ROOT, UserError
from tasks.svg import safe_svg

SHOWN = 192  # a picture on a page has as many pixels as a square of this side
SECONDS, MEMORY = 5, 1 << 30  # CPU time and bytes of address space of the command


def png(svg: str) -> bytes:
    """The picture of a drawing that `safe_svg.drawing` made; safe_svg.Unreadable if resvg cannot draw it."""
    try:
        return bytes(_import_resvg().svg_to_bytes(svg_string=svg, skip_system_fonts=True, **_font_options()))
    except (ValueError, RuntimeError) as error:
        raise safe_svg.Unreadable(f"resvg cannot draw it ({error})") from None


def _import_resvg() -> ModuleType:
    try:
        import resvg_py
    except ModuleNotFoundError:
        raise UserError(
            "drawings are rendered with the package resvg-py, which this environment does not have: use the base "
            "environment or that of evaluation, or install it",
            code="missing-package",
            package="resvg-py",
        ) from None
    return resvg_py


@cache
def _font_options() -> dict[str, Any]:
    """The same font on every machine, Matplotlib's, for all letters; no letters are drawn without it."""
    spec = importlib.util.find_spec("matplotlib")
    folders = (spec.submodule_search_locations if spec else None) or []
    files = [Path(folder) / "mpl-data/fonts/ttf/DejaVuSans.ttf" for folder in folders]
    families = [f"{kind}_family" for kind in ("font", "serif", "sans_serif", "monospace", "cursive", "fantasy")]
    return {"font_files": [str(file) for file in files if file.is_file()], **dict.fromkeys(families, "DejaVu Sans")}


def png_within_limits(text: str) -> bytes | None:
    """The PNG of what a model wrote, made in a process with limits; None if it is no drawing, or takes too much."""
    _import_resvg()
    try:
        safe_svg.read(text)
    except safe_svg.Unreadable:
        return None
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tasks.svg.render"], input=text.encode("utf-8", "replace"), capture_output=True,
            timeout=20 * SECONDS, check=False, cwd=ROOT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def main() -> None:
    """Command line: SVG on standard input, PNG on standard output; exit status 1 if it cannot be drawn."""
    for limit, value in (
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    text = sys.stdin.buffer.read(4 * safe_svg.MOST_CHARACTERS + 1).decode("utf-8", "replace")
    try:
        image = png(safe_svg.drawing(safe_svg.read(text), SHOWN, text="drawn"))
    except safe_svg.Unreadable as error:
        sys.exit(f"no drawing: {error}")
    sys.stdout.buffer.write(image)


if __name__ == "__main__":
    main()
