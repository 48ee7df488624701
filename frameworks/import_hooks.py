"""Changes to modules of the frameworks' packages, each made when its module is imported, and only then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Change = Callable[[ModuleType], None]


class _Finder(MetaPathFinder):
    def __init__(self, changes: Mapping[str, Change]) -> None:
        self.changes = changes

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self.changes:
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]  # which may change it, too
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_change(module: ModuleType) -> None:
                execute(module)
                self.changes[name](module)

            spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


def after_import(changes: Mapping[str, Change]) -> None:
    """Apply each change to the module of its name: now, if it is imported already, else after its import."""
    for name, apply in changes.items():
        if name in sys.modules:
            apply(sys.modules[name])
    sys.meta_path.insert(0, _Finder(changes))
