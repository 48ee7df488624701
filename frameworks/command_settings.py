"""The settings of a framework's command: each with its value and the key of the run file that it comes from."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Any

from contracts.run_file import Run, Stage
from frameworks.run_settings import refuse

Flags = dict[str, tuple[Any, str]]  # by the framework's name: value, and key ("" where it is the adapter's own)
VALUE = re.compile(r"(?!-)|-\d+\Z|-\d*\.\d+\Z")  # what argparse does not take for another option


def option_in_words(name: str, values: Sequence[Any]) -> list[str]:
    """An option with its values, as argparse reads them: -1e-05 would be another option, and -0.00001 is a number."""
    texts = [_without_exponent(value) for value in values]
    if len(texts) == 1 and not VALUE.match(texts[0]):
        return [f"--{name}={texts[0]}"]
    return [f"--{name}", *texts]


def _without_exponent(value: Any) -> str:
    """A value as text; a negative number in digits alone."""
    is_negative = isinstance(value, float) and float("-inf") < value < 0
    return format(Decimal(repr(value)), "f") if is_negative else str(value)


class CommandSettings(Flags):
    """Flags of a run, as a framework's `command.py` fills them."""

    def __init__(self, run: Run) -> None:
        """Empty."""
        super().__init__()
        self.run = run

    def state(self, name: str, value: Any, key: str = "") -> None:
        """Set one that comes from a key of the run's scale, such as `optimizer.learning_rate`."""
        self[name] = (value, f"{self.run.scale}.{key}" if key else "")

    def state_native(self, stage: Stage, may_change: Collection[str] = ()) -> None:
        """Set those under `native`; Hydra adds a setting by a + before its name.

        Args:
            stage: of the run.
            may_change: settings that `native` may set again.

        Raises:
            UserError: one of the others is stated already.
        """
        for name, value in stage.native.items():
            stated = {other.lstrip("+"): key for other, (_, key) in self.items()}
            if (bare := name.lstrip("+")) in stated and bare not in may_change:
                source = stated[bare] or "the adapter"
                raise refuse(self.run, f"native.{name}", f" is set by {source} already", "setting-stated-twice")
            self.state(name, value, f"native.{name}")
