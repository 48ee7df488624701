"""What a user can get wrong, or a machine can do to them: one clear sentence, another status than 0, nothing lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from envs.build import python
from tests.workflow import miniature

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return miniature.copy(tmp_path_factory.mktemp("bad"))


def one_sentence(output: str, *parts: str) -> None:
    """All words stand in one line, and no Python traceback is shown."""
    assert any(all(word in line for word in parts) for line in output.splitlines()), output
    assert "Traceback" not in output, output


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("reproduce=[openr2]", ("openr2", "openr1")),
        ("scale=huge", ("config.yaml", "scale", "huge")),
        ("seed=3", ("config.yaml", "unknown key seed", "seeds")),
        ("seeds=[one]", ("config.yaml", "seeds")),
        ("grader=math-verfy", ("grader", "math-verify")),
        (
            "imported=[imported/mine]",
            ("results/demo/runs/imported/mine has neither scores nor a training log", "docs/how-to/import.md"),
        ),
    ],
)
def test_a_wrong_configuration(project: Path, setting: str, parts: tuple[str, ...]) -> None:
    status, output = miniature.snakemake(project, "-n", "reproduce_all", "--config", setting)
    assert status != 0
    one_sentence(output, *parts)


def test_an_unknown_recipe_as_target(project: Path) -> None:
    status, output = miniature.snakemake(project, "-n", "reproduce_openr2")
    assert status != 0
    one_sentence(output, "reproduce_openr2")


def test_a_broken_run_file(tmp_path: Path) -> None:
    broken = miniature.copy(tmp_path)
    file = broken / "recipes" / f"{miniature.RUN}.yaml"
    file.write_text(file.read_text().replace("full:", "full: [", 1))
    status, output = miniature.snakemake(broken, "-n", "reproduce_all")
    assert status != 0
    one_sentence(output, f"{miniature.RUN}.yaml", "not valid YAML in line")


def test_the_full_scale_graph_shows_gpus_memory_and_time(project: Path) -> None:
    status, output = miniature.snakemake(project, "-n", "reproduce_all", "--config", "scale=full")
    assert status == 0, output
    assert "gpu=8" in output and "mem_mb=512000" in output and "runtime=4320" in output, output


def test_a_truncated_file_in_the_mirror(project: Path, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "gsm8k_train.jsonl").write_text('{"question": "2+2?", "answer": "#### 4"}\n' * 1000)
    target = "results/demo/data/train/gsm8k_train.parquet"
    status, output = miniature.snakemake(project, target, "--config", f"data_mirror={tmp_path}")
    assert status != 0 and not (project / target).exists()
    one_sentence(output, "gsm8k_train", "bytes")


def test_no_network(project: Path) -> None:
    target = "results/demo/data/train/numinamath_tir.parquet"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(project / "no-cache")}
    done = subprocess.run(
        [python("base"), "-m", "tasks.load_problems", "numinamath_tir", "--output", target],
        cwd=project, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    one_sentence(done.stderr, "numinamath_tir", "data_mirror")


def test_a_checkpoint_without_weights(project: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    problems = "results/demo/data/train/arithmetic.parquet"
    options = ["--run", miniature.RUN, "--scale", "demo", "--seed", "0", "--problems", problems, "--model", tmp_path]
    options += ["--work", tmp_path / "work", "--output", tmp_path / "log.parquet", "--rollouts", tmp_path / "r.parquet"]
    done = subprocess.run(
        [python("base"), "-m", "frameworks", "train", *options],
        cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    one_sentence(done.stderr, str(tmp_path), "no weights", "no tokenizer")


@pytest.mark.parametrize(
    ("content", "parts"), [(b"\xff\xfe", ("config.yaml", "UTF-8")), (b"a: [b", ("config.yaml", "line 1"))]
)
def test_a_configuration_that_cannot_be_read(tmp_path: Path, content: bytes, parts: tuple[str, ...]) -> None:
    damaged = miniature.copy(tmp_path)
    (damaged / "config" / "config.yaml").write_bytes(content)
    status, output = miniature.snakemake(damaged, "-n", "grade")
    assert status != 0
    one_sentence(output, *parts)


@pytest.mark.parametrize(
    ("file", "old", "new", "parts"),
    [
        (
            "eval/benchmarks/arithmetic_words.yaml",
            "  source:",
            "  sauce:",
            ("arithmetic_words.yaml", "metadata.source"),
        ),
        (
            "eval/benchmarks/arithmetic_words.yaml",
            "task: arithmetic\n",
            "task: arithmetyc\n",
            ("arithmetyc", "arithmetic"),
        ),
        ("eval/benchmarks/arithmetic_words.yaml", "rows: 12", "rows: [12", ("arithmetic_words.yaml", "not valid YAML")),
        ("tasks/arithmetic/task.yaml", "  prompts:", "  prompt:", ("arithmetic/task.yaml", "demo has no prompts")),
    ],
)
def test_a_damaged_setting(tmp_path: Path, file: str, old: str, new: str, parts: tuple[str, ...]) -> None:
    damaged = miniature.copy(tmp_path) / file
    text = damaged.read_text(encoding="utf-8")
    assert old in text
    damaged.write_text(text.replace(old, new), encoding="utf-8")
    status, output = miniature.snakemake(tmp_path, "-n", "reproduce_all")
    assert status != 0
    one_sentence(output, *parts)
    assert "File " not in output.partition("Building DAG")[2]


def test_a_read_only_project(tmp_path: Path) -> None:
    records = miniature.copy(tmp_path) / ".snakemake"
    records.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", records], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    try:
        status, output = miniature.snakemake(tmp_path, "grade")
    finally:
        subprocess.run(["umount", records], check=True)
    assert status != 0
    one_sentence(output, ".snakemake", "cannot be written", "make it writable")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two pages."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_and_then_room_again(project: Path, small_disk: Path) -> None:
    arguments = (f"{small_disk}/demo/data/train/arithmetic.parquet", "--config", f"results={small_disk}")
    status, output = miniature.snakemake(project, *arguments)
    assert status != 0 and not list(small_disk.rglob("*.parquet"))
    one_sentence(output, "the disk is full", "run the same command again")
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    status, output = miniature.snakemake(project, *arguments)
    assert status == 0, output
