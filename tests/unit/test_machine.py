"""The description of a machine tells processors apart that have the same name."""

from __future__ import annotations

import platform

import pytest

from contracts.provenance import machine, processor

X86 = """processor\t: 0
cpu family\t: {family}
model\t\t: {model}
model name\t: {name}
flags\t\t: fpu vme avx2

processor\t: 1
cpu family\t: {family}
model\t\t: {model}
model name\t: {name}
"""


@pytest.mark.parametrize("name", ["AMD EPYC", "Intel(R) Xeon(R) Processor", "A: B"])
def test_a_processor_has_its_name_and_the_numbers_of_its_kind(name: str) -> None:
    kinds = [processor(X86.format(family=family, model=model, name=name)) for family, model in ((25, 1), (26, 2))]
    assert kinds == [f"{name} (family 25, model 1)", f"{name} (family 26, model 2)"]


def test_a_processor_of_arm_has_no_name_there() -> None:
    described = "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"
    assert processor(described) == f"{platform.machine()} (implementer 0x41, part 0xd4f)"
    assert processor("") == platform.machine()


@pytest.mark.parametrize("cores, text", [({5}, "1 core of "), ({0, 7}, "2 cores of ")])
def test_this_machine_has_cores_and_memory(monkeypatch: pytest.MonkeyPatch, cores: set[int], text: str) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: cores)
    assert machine().startswith(text) and machine().endswith(" GB")
