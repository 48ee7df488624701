"""What a command reported as done is there after a power cut; nothing is deleted before its successor is safe.

The cut is real as far as the disk goes: an ext4 file system on a loop device is shut down without writing back what is
only in memory, and mounted again. `make test-all`, which needs no loop device, checks the order of the system calls.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from envs.build import python
from tests.unit.model_folders import CONTENT, weights
from tests.waiting import wait_until

pytestmark = [pytest.mark.contract, pytest.mark.slow]
EXT4_IOC_SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, 2  # _IOR('X', 125, __u32), EXT4_GOING_FLAGS_NOLOGFLUSH
RUN = "openr1/qwen2.5-math-7b"

# Writes the journals as eval.vllm_worker does, so that `generate` finds that nothing is missing.
JOURNALS = """
import json, sys
from pathlib import Path
from system import durable
from eval import generate, protocols, sample_journal
arguments = generate.parse_arguments()
arguments.gpus = []
for target in generate.list_targets(arguments, protocols.load(arguments.protocol, {})):
    writer = sample_journal.Writer(target.folder)
    writer.write({
        "problem_id": problem, "repeat": repeat, "seed": 1, "prompt": "p", "completion": "The answer is 4." * 40,
        "finish_reason": "stop", "prompt_tokens": 1, "completion_tokens": 9,
    } for problem, repeat in target.expected())
    writer.close()
    durable.write_text(target.folder / "engine.json", json.dumps({"context_tokens": 4096}))
"""


def commands(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Every stage that writes without a GPU, in order: the environment and the words after `python`."""
    module = {
        "loading": ["tasks.load_problems", "arithmetic_words", "--output", f"{folder}/data/arithmetic_words.parquet"],
        "export": [
            "frameworks", "export", "--run", RUN, "--scale", "demo", "--seed", "0", "--model", f"{folder}/model",
            "--work", f"{folder}/work", "--step", "0", "--output", f"{folder}/checkpoints/step-0",
        ],
        "generate": [
            "eval.generate", "--run", f"{RUN}/seed-0", "--checkpoint", f"0={folder}/checkpoints/step-0", "--benchmark",
            "arithmetic_words", "--protocol", "demo", "--data", f"{folder}/data", "--work", f"{folder}/work/samples",
            "--output", f"{folder}/samples", "--device", "cpu",
        ],
        "grade": [
            "eval.grade", "--samples", f"{folder}/samples", "--data", f"{folder}/data", "--output", f"{folder}/graded",
        ],
        "score": ["eval.score", "--graded", f"{folder}/graded", "--output", f"{folder}/scores.parquet"],
    }  # fmt: skip
    environments = {"generate": "eval", "grade": "eval"}
    return {name: (environments.get(name, "base"), ["-m", *arguments]) for name, arguments in module.items()}


def prepare(folder: Path) -> None:
    (folder / "model").mkdir()
    for name, content in CONTENT.items():
        (folder / "model" / name).write_text(content)
    weights(folder / "model" / "model.safetensors")


def run(environment: str, arguments: list[str], *before: str | Path) -> None:
    done = subprocess.run(
        [*before, python(environment), *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def content(folder: Path) -> dict[str, str]:
    """The hash of every file, but for locks and logs."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted ext4 file system in a file."""
    image, mount = tmp_path / "image", tmp_path / "disk"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    if not shutil.which("mkfs.ext4") or subprocess.run(["mkfs.ext4", "-q", "-F", image], check=False).returncode:
        pytest.skip("needs mkfs.ext4")
    if subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs root and a loop device")
    yield mount
    subprocess.run(["umount", mount], check=True)


def device_of(mount: Path) -> str:
    """The loop device behind a mounted file system."""
    command = ["findmnt", "--noheadings", "--output", "SOURCE", mount]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()).name


def cut_power(mount: Path) -> None:
    """Commit what the file system may commit by itself at any time, lose what is in memory, and mount it again."""
    with (mount / "other").open("w") as other:
        other.write("written by another process")
        other.flush()
        os.fsync(other.fileno())  # commits deletions and renames, without the data of files that were not flushed
    descriptor = os.open(mount, os.O_RDONLY)
    fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
    os.close(descriptor)
    device = Path("/sys/fs/ext4", device_of(mount))
    subprocess.run(["umount", mount], check=True)
    wait_until(lambda: not device.exists())  # a sandbox that another test starts has a copy of the mount for its time
    subprocess.run(["mount", "-o", "loop", mount.with_name("image"), mount], check=True)
    (mount / "other").unlink()


def test_the_cut_loses_what_was_not_flushed(disk: Path) -> None:
    """Otherwise the next test could not fail."""
    (disk / ".partial").write_text("x" * 100_000)
    (disk / ".partial").rename(disk / "table")
    cut_power(disk)
    assert (disk / "table").stat().st_size == 0


def test_what_a_stage_made_is_there_after_a_power_cut(disk: Path) -> None:
    prepare(disk)
    os.sync()
    for name, (environment, arguments) in commands(disk).items():
        if name == "generate":
            run("eval", ["-c", JOURNALS, *arguments[2:]])
            before = content(disk / "work")
            cut_power(disk)
            assert content(disk / "work") == before and before  # samples are safe while they are generated
        run(environment, arguments)
        before = content(disk)
        cut_power(disk)
        assert content(disk) == before, name
    assert not list((disk / "work").rglob("*.jsonl")) and (disk / "scores.parquet").is_file()


CALL = re.compile(r"(?:\d+ +)?(fsync|fdatasync|rename|renameat2?|unlink|unlinkat|rmdir)\((.*)\) = 0$")


def calls(trace: Path) -> list[tuple[str, list[str]]]:
    """The successful calls in order, each with its paths; strace -y shows a descriptor as 3</the/path>."""
    listed = []
    for line in trace.read_text().split("\n"):
        if match := CALL.match(line):
            folders = re.findall(r"(?:\d+|AT_FDCWD)<([^>]*)>", match[2])
            names = re.findall(r'"([^"]*)"', match[2])
            at = folders[0] if folders and names else ""
            listed.append((match[1].removesuffix("2"), [str(Path(at, name)) for name in names] or folders))
    return listed


@pytest.mark.long
def test_files_are_flushed_before_they_are_renamed_and_journals_deleted_last(tmp_path: Path) -> None:
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    prepare(tmp_path)
    trace, new_files = tmp_path / "trace", set[str]()
    traced = ["strace", "-f", "-y", "-s", "4096", "-o", str(trace),
              "-e", "trace=fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,rmdir"]  # fmt: skip
    for name, (environment, arguments) in commands(tmp_path).items():
        if name == "generate":
            run("eval", ["-c", JOURNALS, *arguments[2:]])
        run(environment, arguments, *traced)
        flushed, unsafe, deleted = set[str](), set[str](), list[str]()
        for call, paths in calls(trace):
            if call in ("fsync", "fdatasync"):
                flushed |= set(paths)
                unsafe = {path for path in unsafe if str(Path(path).parent) not in paths}
            elif call.startswith("rename") and Path(paths[-1]).is_relative_to(tmp_path):
                source, target = paths
                inside = [path for path in flushed if Path(path).is_relative_to(source)]
                assert source in flushed, f"{name}: {source} was renamed before it was flushed"
                renamed = Path(target)
                if renamed.is_dir():
                    wanted = {source, *(str(Path(source, file.relative_to(renamed))) for file in renamed.rglob("*"))}
                    assert wanted <= set(inside), f"{name}: renamed before {wanted - set(inside)} were flushed"
                unsafe.add(target)
                new_files.add(target)
            elif call.startswith("unlink") and paths[-1].endswith(".jsonl"):
                assert not unsafe, f"{name}: {paths[-1]} was deleted before {unsafe} were safe"
                deleted += paths
        assert not unsafe, name
        assert bool(deleted) == (name == "generate")
    assert {os.path.relpath(path, tmp_path) for path in new_files} >= {
        "data/arithmetic_words.parquet", "data/arithmetic_words.parquet.provenance.json", "checkpoints/step-0",
        "samples/step-0/arithmetic_words.parquet", "samples/step-0/arithmetic_words.parquet.provenance.json",
        "graded/step-0/arithmetic_words.parquet", "scores.parquet", "scores.parquet.provenance.json",
    }  # fmt: skip
    assert json.loads((tmp_path / "checkpoints/step-0/provenance.json").read_text())["step"] == 0
