"""Each fault that the rehearsal looks for, planted, is found."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster import rehearsal
from contracts.run_file import Run, Stage
from frameworks import adapter
from recipes.runs import load_run, run_names
from system.errors import UserError
from tests.user_errors import refused

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
    return {what for well, what, _ in rehearsal.check_compilers(environment) if not well} - {"ninja", "g++"}


def test_another_cuda_than_that_of_the_headers(tmp_path: Path) -> None:
    assert wrong(toolkit(tmp_path)) == set()
    assert wrong(toolkit(tmp_path, nvcc="13.5")) == {"CUDA"}
    assert wrong(toolkit(tmp_path, headers="13020")) == {"CUDA"}
    nothing = {"PATH": str(tmp_path / "nothing")}
    assert wrong(nothing) == {"nvcc", "CUDA_HOME"}
    assert {what for well, what, _ in rehearsal.check_compilers(nothing) if not well} >= {"ninja", "nvcc", "g++"}


def test_a_kernel_that_does_not_compile(tmp_path: Path) -> None:
    assert rehearsal.compile_kernel(toolkit(tmp_path), "90") == (False, "kernel for sm_90", "x.h: error: other")


@pytest.mark.slow
def test_an_op_that_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as DeepSpeed's optimiser without nvcc; and one that does, for the architectures of A100 and H100."""
    lists = "os.environ['TORCH_CUDA_ARCH_LIST'] == '8.0;9.0' and os.environ['FLASHINFER_CUDA_ARCH_LIST'] == '8.0 9.0a'"
    linked = "subprocess.run('g++ -shared -o $TORCH_EXTENSIONS_DIR/op.so -lcuda', shell=True, check=True)"
    rules = "open(os.environ['TORCH_EXTENSIONS_DIR'] + '/build.ninja', 'w').write('{}')"
    script = f"import os, subprocess; assert {lists}; {linked}; {rules.format('code=sm_80 code=sm_90a')}"
    monkeypatch.setitem(rehearsal.OPS, "FusedAdam", script)
    well, what, text = rehearsal.compile_op("FusedAdam")
    assert well and what == "compile FusedAdam" and "sm_80, sm_90" in text, text
    for written in ("", "code=sm_90"):  # compiled for the CPU in its place, or for one architecture
        monkeypatch.setitem(rehearsal.OPS, "FusedAdam", f"import os; {rules.format(written)}")
        architectures = "sm_80" if written else "sm_80, sm_90"
        assert rehearsal.compile_op("FusedAdam") == (False, "compile FusedAdam", f"not compiled for {architectures}")
    monkeypatch.setitem(rehearsal.OPS, "CPUAdam", "pass")  # it has no kernel
    assert rehearsal.compile_op("CPUAdam")[0] is True
    monkeypatch.setitem(rehearsal.OPS, "sampler", "raise OSError('CUDA_HOME environment variable is not set')")
    error = "OSError: CUDA_HOME environment variable is not set"
    assert rehearsal.compile_op("sampler") == (False, "compile sampler", error)


@pytest.mark.slow
def test_every_op_that_is_compiled_at_run_time_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """DeepSpeed's optimisers where they train; FlashInfer's sampler where vLLM evaluates."""
    monkeypatch.setattr(rehearsal, "ARCHITECTURES", ())
    monkeypatch.setattr(rehearsal, "check_import", lambda module: (True, module, ""))
    monkeypatch.setattr(rehearsal, "check_engine_arguments", lambda arguments: [])
    monkeypatch.setattr(rehearsal, "compile_op", lambda name: (True, "compile " + name, ""))
    monkeypatch.setattr(rehearsal, "check_commands", lambda framework: [])
    monkeypatch.setattr(rehearsal, "check_attentions", lambda framework: [])
    monkeypatch.setenv("PATH", os.environ["PATH"])  # which the rehearsal changes

    def ops(framework: str, evaluation: bool) -> list[str]:
        return [what for _, what, _ in rehearsal.all_checks(framework, [], evaluation) if what.startswith("compile ")]

    assert ops("openrlhf", False) == ["compile FusedAdam", "compile CPUAdam"] and ops("trl", False) == []
    assert ops("", True) == ["compile sampler"]


def test_kernels_that_are_left_out_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only in an environment that was built so, and only where they are missing."""
    monkeypatch.setattr(rehearsal, "KERNELS", ("kernels_that_are_not_here", "json"))
    assert list(rehearsal.stub_missing_kernels()) == []
    monkeypatch.setattr(sys, "prefix", f"/envs/verl-cuda-0{rehearsal.build.WITHOUT_KERNELS}")
    monkeypatch.setitem(sys.modules, "kernels_that_are_not_here", None)
    monkeypatch.delitem(sys.modules, "kernels_that_are_not_here")
    assert [line[:2] for line in rehearsal.stub_missing_kernels()] == [(None, "kernels_that_are_not_here")]
    assert rehearsal.check_import("kernels_that_are_not_here")[0] is True


def test_a_package_that_is_missing_or_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaves_at_once.py").write_text("raise SystemExit('no GPU')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert rehearsal.check_import("flash_attn_that_is_not_here")[0] is False
    assert rehearsal.check_import("leaves_at_once") == (False, "leaves_at_once", "SystemExit: no GPU")
    assert rehearsal.check_import("json")[0] is True


@pytest.mark.slow
def test_a_command_that_the_release_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(self: object, run: object) -> None:
        raise UserError("no such setting", code="refused-setting")

    monkeypatch.setattr(type(TRL), "check", check)
    lines = list(rehearsal.check_commands("trl"))
    runs = [name for name in run_names() if load_run(name, "full").framework == "trl"]
    assert lines[: len(runs)] == [(False, name, "no such setting") for name in runs]
    assert len(lines) > len(runs) and not any(well for well, *_ in lines)  # those of make gpu-smoke, too


def with_native(run: Run, add: Mapping[str, Any] = {}, drop: Sequence[str] = ()) -> Run:
    def changed(stage: Stage) -> Stage:
        kept = {key: value for key, value in stage.native.items() if key not in drop}
        return replace(stage, native={**kept, **add})

    return replace(run, stages=tuple(changed(stage) for stage in run.stages))


def test_an_attention_whose_package_is_missing_or_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flash_attn", None)
    assert rehearsal.check_attention("flash_attention_2")[0] is False
    stand_in = SimpleNamespace(flash_attn_func=None)
    monkeypatch.setitem(sys.modules, "flash_attn", stand_in)
    assert rehearsal.check_attention("flash_attention_2")[0] is False
    stand_in.flash_attn_varlen_func = None
    assert rehearsal.check_attention("flash_attention_2")[0] is True


def test_a_critic_needs_flash_attention_whatever_the_actor_has() -> None:
    """Of the release that hard-codes it."""
    run = load_run("tinyzero/ppo-3b", "full")
    sdpa = {"+actor_rollout_ref.model.override_config.attn_implementation": "sdpa"}
    framework = adapter.load(run.framework)
    assert framework.attention_implementations(run, run.stages[0]) == {"flash_attention_2"}
    chosen = with_native(run, sdpa)
    assert framework.attention_implementations(chosen, chosen.stages[0]) == {"flash_attention_2", "sdpa"}
    grpo = with_native(load_run("tinyzero/grpo-3b", "full"), sdpa)
    assert framework.attention_implementations(grpo, grpo.stages[0]) == {"sdpa"}


def test_every_run_has_room() -> None:
    assert [line for name in run_names() if not (line := rehearsal.check_memory(load_run(name, "full")))[0]] == []


@pytest.mark.parametrize(
    ("name", "drop"),
    [
        ("tinyzero/ppo-3b", ["actor_rollout_ref.ref.fsdp_config.param_offload", "critic.fsdp.optimizer_offload"]),
        ("openr1/qwen2.5-math-7b", ["dtype"]),  # TRL's default is float32, which each process loads
    ],
)
def test_a_run_that_would_fill_its_gpus_or_its_node(name: str, drop: list[str]) -> None:
    run = load_run(name, "full")
    assert set(drop) <= set(run.stages[0].native)
    assert rehearsal.check_memory(run)[0] and not rehearsal.check_memory(with_native(run, drop=drop))[0]


def test_a_model_of_unknown_size() -> None:
    assert rehearsal.check_memory(replace(load_run("tinyzero/ppo-3b", "full"), model="other"))[0] is False


def test_the_exit_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])  # which the rehearsal changes
    monkeypatch.setattr(rehearsal, "ARCHITECTURES", ())  # there may be a real nvcc, which takes a minute
    monkeypatch.setattr(sys, "argv", ["rehearsal", "--import", "json", "not_here_either"])
    with refused("rehearsal-failed"):
        rehearsal.main()
    lines = capsys.readouterr().out.split("\n")
    assert any(line.startswith("wrong") and "not_here_either" in line for line in lines)
    assert any(line.startswith("ok") and "json" in line for line in lines)
    monkeypatch.setattr(rehearsal, "all_checks", lambda *_: iter([(None, "kernels", "left out")]))
    rehearsal.main()  # what was left out on request is not wrong
    assert "left out" in capsys.readouterr().out
