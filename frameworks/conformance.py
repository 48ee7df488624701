"""Cases of conformance/ put through the installed framework's own functions; run with its environment's Python.

    python -m frameworks.conformance --framework NAME --input CASES.pickle --output RESULTS.pickle

One process does all cases. Each is in float64, so that what differs is the formula and not rounding: torch's default
type is set to it, which the frameworks' own tensors follow. Batches under `float32` go through the group's std in
float32. Cases are repeated with the errors under `mutants`, each planted in a copy of one of the framework's functions,
which has to be noticed.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from contracts.run_file import framework_names
from system.command_line import argument_parser
from system.errors import run_command

LONGEST, VOCABULARY = 7, 8  # most tokens of a completion, and how many there are to choose from
LEARNING_RATE, BETA2, WEIGHT_DECAY = 1e-3, 0.98, 0.01  # of the AdamW step
DRO_BETA = 0.3  # of a loss whose releases have no default


class CannotExpress(Exception):
    """The release has no such formula; the message says what it has instead."""


class Functions(Protocol):
    """What a framework's conformance module offers."""

    def prepare(self, settings: Mapping[str, Any], batch: Any) -> Any:
        """The release's own configuration of a formula for batches of a shape; raises CannotExpress."""

    def run(self, prepared: Any, settings: Mapping[str, Any], batch: Any, logits: Any) -> tuple[Any, float]:
        """Advantages of all tokens (None where they are given) and the loss, whose gradient is in `logits.grad`."""

    def optimizer(self, prepared: Any, parameters: list[Any]) -> Any:
        """The release's AdamW with the rates above."""


def load_functions(name: str) -> Functions:
    """The module of a framework, or of a library in conformance/, which imports it."""
    package = f"frameworks.{name}.conformance" if name in framework_names() else f"conformance.{name}"
    offered: Functions = importlib.import_module(package).FUNCTIONS
    return offered


def as_tensors(batch: Mapping[str, Any], dtype: Any) -> Any:
    """A batch with torch's tensors."""
    import torch

    converted = {name: torch.as_tensor(value) for name, value in batch.items() if isinstance(value, np.ndarray)}
    typed = {name: value.to(dtype) if value.is_floating_point() else value for name, value in converted.items()}
    return SimpleNamespace(**{**batch, **typed, "lengths": converted["mask"].sum(1).long()})


class Runner:
    """A framework's functions with what they prepare for each formula and shape."""

    def __init__(self, framework: str, dtype: str = "float64") -> None:
        """Imports the framework and sets torch's default type."""
        import torch

        self.dtype = getattr(torch, dtype)
        torch.set_default_dtype(self.dtype)
        torch.set_num_threads(1)
        self.functions = load_functions(framework)
        self.prepared: dict[Any, Any] = {}

    def case(self, name: str, settings: Mapping[str, Any], batch: Any) -> tuple[Any, Any, Any]:
        """Value, gradient and step of one case, as NumPy arrays."""
        import torch

        key = (name, batch.samples, len(batch.mask))
        if key not in self.prepared:
            self.prepared[key] = self.functions.prepare(settings, batch)
        logits = torch.nn.Parameter(batch.logits.clone())
        advantages, loss = self.functions.run(self.prepared[key], settings, batch, logits)
        gradient = logits.grad.detach().clone()
        before = logits.detach().clone()
        self.functions.optimizer(self.prepared[key], [logits]).step()
        value = torch.tensor([loss]) if advantages is None else advantages * batch.mask
        return value.numpy(), gradient.numpy(), (logits.detach() - before).numpy()

    def all(
        self, formulas: Mapping[str, Any], batches: Sequence[Any], cases: Sequence[tuple[str, int]]
    ) -> dict[str, Any]:
        """By formula, the parts of all its cases end to end; the reason, where it cannot be expressed.

        Args:
            formulas: settings by name.
            batches: as `tensors` gives them.
            cases: formula and index of a batch.
        """
        parts_by_formula: dict[str, list[Any]] = {}
        reasons: dict[str, str] = {}
        for name, index in cases:
            if name in reasons:
                continue
            try:
                parts = self.case(name, formulas[name], batches[index])
            except CannotExpress as reason:
                reasons[name] = str(reason)
                continue
            parts_by_formula.setdefault(name, []).extend(np.asarray(part, dtype=np.float64).ravel() for part in parts)
        return {name: np.concatenate(parts) for name, parts in parts_by_formula.items()} | reasons


@contextmanager
def planted_error(mutant: Mapping[str, str]) -> Iterator[None]:
    """A copy of one of the framework's functions with an error in it, in the place of the function.

    Args:
        mutant: `function` as `module:name` or `module:Class.name`; `old`, which is in its source once, becomes `new`;
            `formula` is the one that is tried.

    Raises:
        RuntimeError: the installed release's function does not hold `old` exactly once.
    """
    module_name, _, path = mutant["function"].partition(":")
    module = importlib.import_module(module_name)
    *parents, name = path.split(".")
    owner: Any = module
    for parent in parents:
        owner = getattr(owner, parent)
    kept = inspect.getattr_static(owner, name)
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(getattr(owner, name))))
    if source.count(mutant["old"]) != 1:
        raise RuntimeError(
            f"{mutant['function']} holds {mutant['old']!r} {source.count(mutant['old'])} times, not once"
        )
    lines = source.replace(mutant["old"], mutant["new"]).split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("def "))
    names = dict(vars(module))
    exec(compile("\n".join(lines[start:]), f"<{path} with an error>", "exec"), names)
    copy: Any = names[name]
    holders = [(owner, name)] if parents else _holders(kept, name)
    tables = (
        [] if parents else [(table, key) for table in _tables(module) for key, value in table.items() if value is kept]
    )
    for holder, attribute in holders:
        setattr(holder, attribute, copy)
    for table, key in tables:
        table[key] = copy
    try:
        yield
    finally:
        for holder, attribute in holders:
            setattr(holder, attribute, kept)
        for table, key in tables:
            table[key] = kept


def _holders(function: Any, name: str) -> list[tuple[Any, str]]:
    """Every loaded module that holds a function under its name: `from x import y` makes copies of the reference."""
    import sys

    return [
        (module, name) for module in list(sys.modules.values()) if getattr(module, "__dict__", {}).get(name) is function
    ]


def _tables(module: Any) -> list[dict[Any, Any]]:
    """Registries of a module, such as those of loss functions by name."""
    return [value for value in vars(module).values() if type(value) is dict]


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--framework", required=True, help="its name, or that of a library in conformance/")
    parser.add_argument("--input", type=Path, required=True, metavar="PICKLE")
    parser.add_argument("--output", type=Path, required=True, metavar="PICKLE")
    arguments = parser.parse_args()
    request = pickle.loads(arguments.input.read_bytes())
    runner = Runner(arguments.framework)
    batches = [as_tensors(batch, runner.dtype) for batch in request["batches"]]
    results: dict[str, Any] = {"": runner.all(request["formulas"], batches, request["cases"])}
    for name, mutant in request["mutants"].get(arguments.framework, {}).items():
        with planted_error(mutant):
            tried = [case for case in request["cases"] if case[0] == mutant["formula"]]
            results[name] = runner.all(request["formulas"], batches, tried)
    runner = Runner(arguments.framework, "float32")
    for name, equal in request["float32"].items():
        formula, batches = "group std", [as_tensors(batch, runner.dtype) for batch in equal]
        tried = [(formula, number) for number in range(len(batches))]
        results[name] = runner.all(request["formulas"], batches, tried)
    arguments.output.write_bytes(pickle.dumps((results, time.process_time()), protocol=4))


if __name__ == "__main__":
    from frameworks import conformance  # the module that the frameworks' own import; this one is another

    run_command(conformance.main)
