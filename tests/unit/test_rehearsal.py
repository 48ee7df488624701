"""Each fault that the rehearsal looks for, planted, is found."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from contracts.errors import UserError
from frameworks import adapter, rehearsal
from recipes.runs import load_run, run_names

TRL = adapter.load("trl")


def toolkit(folder: Path, nvcc: str = "13.0", headers: str = "13000") -> dict[str, str]:
    """A toolkit whose nvcc says its version and otherwise fails as the real one does with other headers."""
    program, header = folder / "bin" / "nvcc", folder / "include" / "cuda_runtime_api.h"
    for file in (program, header):
        file.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "release {nvcc}, V" && exit\necho "x.h: error: other" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    header.write_text(f"#define CUDART_VERSION  {headers}\n")
    return {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "CUDA_HOME": str(folder)}


def wrong(environment: dict[str, str]) -> set[str]:
    return {what for well, what, _ in rehearsal.compilers(environment) if not well} - {"ninja", "g++"}


def test_another_cuda_than_that_of_the_headers(tmp_path: Path) -> None:
    assert wrong(toolkit(tmp_path)) == set()
    assert wrong(toolkit(tmp_path, nvcc="13.5")) == {"CUDA"}
    assert wrong(toolkit(tmp_path, headers="13020")) == {"CUDA"}
    assert wrong({"PATH": str(tmp_path / "nothing")}) == {"nvcc", "CUDA_HOME"}


def test_a_kernel_that_does_not_compile(tmp_path: Path) -> None:
    assert rehearsal.compiled(toolkit(tmp_path), "90") == (False, "kernel for sm_90", "x.h: error: other")


def test_a_package_that_is_missing_or_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaves_at_once.py").write_text("raise SystemExit('no GPU')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert rehearsal.imported("flash_attn_that_is_not_here")[0] is False
    assert rehearsal.imported("leaves_at_once") == (False, "leaves_at_once", "SystemExit: no GPU")
    assert rehearsal.imported("json")[0] is True


def test_a_command_that_the_release_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(self: object, run: object) -> None:
        raise UserError("no such setting")

    monkeypatch.setattr(type(TRL), "check", check)
    found = list(rehearsal.read_commands("trl"))
    runs = [name for name in run_names() if load_run(name, "full").framework == "trl"]
    assert found == [(False, name, "no such setting") for name in runs]


def test_the_exit_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])  # which the rehearsal changes
    monkeypatch.setattr(rehearsal, "ARCHITECTURES", ())  # there may be a real nvcc, which takes a minute
    monkeypatch.setattr(sys, "argv", ["rehearsal", "--import", "json", "not_here_either"])
    with pytest.raises(UserError, match="would stop at full scale"):
        rehearsal.main()
    lines = capsys.readouterr().out.split("\n")
    assert any(line.startswith("wrong") and "not_here_either" in line for line in lines)
    assert any(line.startswith("ok") and "json" in line for line in lines)
