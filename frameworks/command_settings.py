"""The settings of a framework's command: each with its value and the key of the run file that it comes from."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from contracts.run_file import Run, Stage
from frameworks.run_settings import refuse

Flags = dict[str, tuple[Any, str]]  # by the framework's name: value, and key ("" where it is the adapter's own)


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
