"""Locks: each file that is installed has its hash in them, and no address; environments are named after versions."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from contracts.run_file import ROOT
from envs import build

LOCKS = sorted([*build.ENVS.glob("*.lock"), *build.ENVS.glob("*/*.lock")])
LINE = re.compile(r"[a-z0-9][a-z0-9._-]*(\[[a-z0-9,-]+\])?==[a-z0-9.+!]+( --hash=sha256:[0-9a-f]{64})+", re.IGNORECASE)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: str(lock.relative_to(build.ENVS)))
def test_a_lock_has_hashes_and_no_address(lock: Path) -> None:
    lines = lock.read_text(encoding="utf-8").splitlines()
    assert lines and [line for line in lines if not LINE.fullmatch(line)] == []


def test_a_folder_is_named_after_versions_alone(tmp_path: Path) -> None:
    lock = tmp_path / "cpu.lock"
    lock.write_text(f"a==1 --hash=sha256:{'0' * 64}\nb==2 --hash=sha256:{'1' * 64} --hash=sha256:{'2' * 64}\n")
    assert build.versions_hash(lock) == hashlib.sha256(b"a==1\nb==2\n").hexdigest()


def test_whatever_is_installed_is_checked_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str | Path], environment: dict[str, str] | None = None) -> None:
        commands.append([str(word) for word in command])
        (script := build.folder("verl", "cuda") / "bin" / "activate").parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"VIRTUAL_ENV={script.parent.parent}\n")

    monkeypatch.setattr(build, "run", run)
    monkeypatch.setattr(build, "TARGET", tmp_path)
    stamp = build.build("verl", "cuda")
    installs = [command for command in commands if {"install", "sync"} & set(command)]
    assert len(installs) == 4 and all("--require-hashes" in command for command in installs), "uv, early, all, pip"
    assert not any("--seed" in command for command in commands)
    record: dict[str, Any] = json.loads(stamp.read_text())
    text = (stamp.parent / record["sbom"]).read_bytes()
    assert hashlib.sha256(text).hexdigest() == record["sbom_sha256"]
    listed = {part["purl"]: part["properties"] for part in json.loads(text)["components"]}
    locked = [line.split() for line in build.lock_file("verl", "cuda").read_text().splitlines()]
    named = dict(package.split("==") for package, *_ in locked)
    assert len(listed) == len({*named, "pip", "setuptools", "wheel"})
    assert [item["value"] for item in listed[f"pkg:pypi/verl@{named['verl']}"]] == [
        value.removeprefix(build.HASH)
        for package, *hashes in locked
        if package.startswith("verl==")
        for value in hashes
    ]


def test_actions_and_image_are_pinned_by_their_content() -> None:
    used = [line for file in (ROOT / ".github/workflows").glob("*.yml") for line in file.read_text().splitlines()]
    actions = [line for line in used if "uses:" in line]
    assert actions and all(re.search(r"uses: [\w/-]+@[0-9a-f]{40}  # v[\d.]+$", line) for line in actions)
    assert re.search(
        r'^container: "docker://python@sha256:[0-9a-f]{64}"$', (ROOT / "Snakefile").read_text(), re.MULTILINE
    )
