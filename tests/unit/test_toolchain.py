"""What a GPU environment compiles with is in its lock, and every job finds it, whatever PATH the job started with."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from contracts.run_file import ROOT, Run
from envs import build, pins
from eval import vllm_settings
from frameworks import trainer_environment
from tests import loaded_runs

LOCKS = sorted(lock for lock in build.ENVS.glob("*/cuda.lock") if "nvidia-cuda-nvcc==" in lock.read_text())
BARE = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
ASK = "import json; from system import toolchain; print(json.dumps(toolchain.environment()))"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: str(lock.parent.name))
def test_the_compiler_is_of_the_same_cuda_as_the_headers(lock: Path) -> None:
    """A newer nvcc refuses them: "CUDA compiler and CUDA toolkit headers are incompatible"."""
    versions = pins.locked_versions(lock)
    headers = versions["nvidia-cuda-runtime"].rpartition(".")[0]
    for package in ("nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-cccl"):
        assert versions[package].startswith(f"{headers}."), f"{package} {versions[package]} beside headers of {headers}"


@pytest.mark.parametrize("name", ["openrlhf", "verl"])
def test_flash_attention_is_locked_with_what_it_is_compiled_with(name: str) -> None:
    lock = build.lock_file(name, "cuda")
    assert lock.with_suffix(".late").read_text().split() == ["flash-attn"]
    assert {"flash-attn", "torch", "wheel", "setuptools", "ninja", "packaging", "psutil"} <= pins.locked_versions(
        lock
    ).keys()


def environment_with_cuda(folder: Path) -> Path:
    """A real environment with ninja and CUDA's wheels by their files' names alone."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    cuda = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "nvidia" / "cu13"
    for program in (folder / "bin" / "ninja", cuda / "bin" / "nvcc"):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    (cuda / "lib").mkdir()
    (cuda / "lib" / "libcudart.so.13").touch()
    return cuda


def test_a_job_finds_the_compilers_of_its_environment(tmp_path: Path) -> None:
    cuda = environment_with_cuda(tmp_path)
    command = [str(tmp_path / "bin" / "python"), "-c", ASK]
    paths = json.loads(subprocess.check_output(command, env=BARE, text=True))
    assert shutil.which("ninja", path=paths["PATH"]) == str(tmp_path / "bin" / "ninja")
    assert shutil.which("nvcc", path=paths["PATH"]) == str(cuda / "bin" / "nvcc")
    assert paths["CUDA_HOME"] == str(cuda) and paths["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
    assert json.loads(subprocess.check_output(command, env=BARE | paths, text=True)) == paths


def test_programs_can_be_linked_against_the_wheels(tmp_path: Path) -> None:
    cuda = environment_with_cuda(tmp_path)
    for _ in range(2):
        assert build.toolkit(tmp_path)["CUDA_HOME"] == str(cuda)
        assert (cuda / "lib64" / "libcudart.so").resolve() == cuda / "lib" / "libcudart.so.13"
    assert build.toolkit(tmp_path / "elsewhere") == {}


EVERY_COMMAND = """
import json, shutil
from eval import vllm_settings
from frameworks import trainer_environment
from recipes.runs import load_run, run_names
found = {"evaluation": vllm_settings.environment("cuda")}
for run in (load_run(name, "full") for name in run_names()):
    for number, stage in enumerate(run.stages):
        found[f"{run.name}, stage {number}"] = {
            **trainer_environment.variables(run, stage, RUN_FOLDER, RUN_FOLDER),
            **trainer_environment.ray_variables(run),
        }
words = ("ninja", "nvcc")
print(json.dumps({name: [shutil.which(word, path=one["PATH"]) for word in words] for name, one in found.items()}))
"""


@pytest.mark.slow
def test_the_commands_of_all_runs_find_the_compilers_on_a_machine_without_any(tmp_path: Path) -> None:
    """Its PATH has neither ninja nor nvcc; the interpreter is that of an environment for GPUs."""
    cuda = environment_with_cuda(tmp_path / "env")
    for folder in ("bin", "run"):
        (tmp_path / folder).mkdir()
    packages = sysconfig.get_path("purelib")  # this interpreter's, which the commands are rendered with
    bare = {"PATH": str(tmp_path / "bin"), "PYTHONPATH": f"{ROOT}:{packages}", "HOME": str(tmp_path)}
    script = f"from pathlib import Path; RUN_FOLDER = Path({str(tmp_path / 'run')!r})\n{EVERY_COMMAND}"
    command = [str(tmp_path / "env" / "bin" / "python"), "-c", script]
    programs = json.loads(subprocess.check_output(command, env=bare, cwd=ROOT, text=True).strip().split("\n")[-1])
    assert len(programs) > len(loaded_runs.runs("full"))
    compilers = [str(tmp_path / "env" / "bin" / "ninja"), str(cuda / "bin" / "nvcc")]
    assert {name: paths for name, paths in programs.items() if paths != compilers} == {}


def test_an_environment_without_kernels_is_another_one() -> None:
    """A run never takes it, and a whole build never takes its wheel."""
    for name in build.names("cuda"):
        has_late = build.lock_file(name, "cuda").with_suffix(".late").is_file()
        whole, partial = (build.folder(name, "cuda", kernels) for kernels in (True, False))
        assert (partial != whole) == has_late and not whole.name.endswith(build.WITHOUT_KERNELS)


@pytest.mark.parametrize("kernels", [True, False])
def test_what_compiles_for_hours_can_be_left_out(
    kernels: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "TARGET", tmp_path)
    monkeypatch.setattr(build, "uv", lambda: Path("uv"))
    called: list[tuple[list[str], dict[str, str]]] = []

    def run(command: list[str | Path], environment: dict[str, str] | None = None) -> None:
        called.append((list(map(str, command)), environment or {}))
        (script := build.folder("verl", "cuda", kernels) / "bin" / "activate").parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"VIRTUAL_ENV={script.parent.parent}\n")

    monkeypatch.setattr(build, "run", run)
    env = build.build("verl", "cuda", kernels).parent
    arguments, settings = [call for call in called if "sync" in call[0]][-1]
    assert "--no-build-isolation" in arguments and env.name.endswith(build.WITHOUT_KERNELS) != kernels
    assert (settings.get("FLASH_ATTENTION_SKIP_CUDA_BUILD") == "TRUE") != kernels
    assert (settings.get("UV_CACHE_DIR") == str(env / "cache")) != kernels


@pytest.mark.parametrize("run", loaded_runs.runs("full"), ids=lambda run: str(run.name))
def test_every_training_has_its_environment_on_path(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    environment = trainer_environment.variables(
        run, run.stages[0], tmp_path, tmp_path
    ) | trainer_environment.ray_variables(run)
    assert environment["PATH"] == f"{Path(sys.executable).parent}:/usr/bin:/bin"
    assert environment["PYTHONPATH"].split(":")[-1] == "/mine"


def test_every_evaluation_has_its_environment_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    environment = vllm_settings.environment("cuda")
    assert environment["PATH"] == f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (
        vllm_settings.environment("cuda") == environment
    )  # the worker compares what it was given with what it would set


def test_no_run_needs_a_compiled_sampler() -> None:
    """Without top-p and top-k vLLM's compiled sampler is never called; evaluations give each request a seed."""
    runs = loaded_runs.runs("full")
    slower = {
        run.name
        for run in runs
        for stage in run.stages
        if stage.rollout.get("top_p", 1.0) != 1.0 and stage.rollout["engine"] != "transformers"
    }
    assert slower == {"game24/grpo", "game24/grpo-running", "game24/grpo-trl"}, (
        "they sample through PyTorch: see system/toolchain.py"
    )
    for run in runs:
        for stage in run.stages:
            assert not [key for key in stage.native if re.search(r"(^|[._])top_[kp]$", key)]
