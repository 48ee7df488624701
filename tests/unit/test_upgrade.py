"""An upgrade is tried beside the project: nothing of it changes before the new version is accepted."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from analysis.upgrade import candidate as candidates
from analysis.upgrade import changes, checks, page
from analysis.upgrade.candidate import Candidate, Outcome, last_sentence
from cli import upgrade
from contracts.run_file import ROOT
from envs import build, pins
from system import project_copy
from system.errors import UserError
from tests.user_errors import refused
from translate.installed_release import changed_settings

ENVS = {
    "base/requirements.in": "click\ntiny-pack==1.0\n",
    "eval/cpu.in": "Tiny_Pack-CPU==1.0\nother==1.0\n",
    "eval/cuda.in": "tiny-pack[fast]==1.0+cu1  # the same\n",
    "docs/cpu.in": "other==1.0\n",
}


def wheel(folder: Path, version: str, name: str = "tiny_pack") -> Path:
    """A package without a module."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        info = f"{name}-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return file


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three environments; its uv and base environment are ours."""
    folder = tmp_path / "project"
    for name, text in ENVS.items():
        (file := folder / "envs" / name).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name in ("build.py", "lock.py", "uv.lock", "pip.lock", "cuda.constraints", "base/cpu.lock"):
        shutil.copy(ROOT / "envs" / name, folder / "envs" / name)
    (folder / ".gitignore").write_text("/work/\n/.envs\n")
    (folder / ".envs").symlink_to(ROOT / ".envs")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    for module in (candidates, project_copy, checks):
        monkeypatch.setattr(module, "ROOT", folder)
    monkeypatch.setattr(build, "ENVS", folder / "envs")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if ".git/" not in str(file)}


def test_a_version_is_set_where_it_is_pinned_and_nowhere_else(project: Path) -> None:
    pins.set_version(project / "envs", "tiny_pack", "2.0", ["base", "eval"])
    texts = {name: (project / "envs" / name).read_text() for name in ENVS}
    assert texts == {
        "base/requirements.in": "click\ntiny-pack==2.0\n",
        "eval/cpu.in": "Tiny_Pack-CPU==2.0\nother==1.0\n",
        "eval/cuda.in": "tiny-pack[fast]==2.0+cu1  # the same\n",
        "docs/cpu.in": "other==1.0\n",
    }


def test_the_environments_are_those_that_pin_the_package(project: Path) -> None:
    candidate, old = upgrade.candidate_of("tiny-pack", "2.0", ())
    assert candidate.environments == ("base", "eval") and "1.0" in old
    assert upgrade.candidate_of("tiny-pack", "2.0", ["eval"])[0].environments == ("eval",)
    with refused("unknown-name"):
        upgrade.candidate_of("tiny", "2.0", ())
    with refused("unknown-name"):
        upgrade.candidate_of("tiny-pack", "2.0", ["docs"])
    with refused("already-pinned"):
        upgrade.candidate_of("tiny-pack", "1.0", ["base"])


def test_a_wheel_names_its_version(project: Path, tmp_path: Path) -> None:
    candidate, _ = upgrade.candidate_of("tiny-pack", str(wheel(tmp_path, "2.0.dev1")), ())
    assert candidate.version == "2.0.dev1" and candidate.wheel
    for bad in (tmp_path / "tiny_pack-3.0-py3-none-any.whl", wheel(tmp_path, "2.0", name="other")):
        with refused("no-wheel"):
            upgrade.candidate_of("tiny-pack", str(bad), ())


def test_another_file_of_a_wheel_s_version_is_not_taken_for_it(tmp_path: Path) -> None:
    file = wheel(tmp_path, "2.0")
    properties = [{"name": "file sha256", "value": hashlib.sha256(file.read_bytes()).hexdigest()}]
    listed = {"components": [{"name": "Tiny.Pack", "properties": properties}]}
    (tmp_path / build.SBOM).write_text(json.dumps(listed))
    checks.check_wheel("tiny-pack", file, tmp_path)
    file.write_bytes(file.read_bytes() + b" ")
    with refused("other-wheel"):
        checks.check_wheel("tiny-pack", file, tmp_path)


@pytest.mark.slow
def test_a_lock_is_made_beside_the_committed_one_until_it_is_accepted(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_NO_INDEX", "1")
    (project / "envs" / "base" / "requirements.in").write_text("tiny-pack==1.0\n")
    before = contents(project / "envs")
    candidate = Candidate("tiny-pack", "2.0", ("base",), wheel(tmp_path / "wheels", "2.0"))
    with refused("nothing-to-accept"):
        candidate.accept()
    candidate.prepare()
    upgrade.do_steps(candidate, ["lock"])
    outcome = candidate.outcomes()["lock", "base"]
    assert not outcome.failed and ["tiny-pack", "", "2.0"] in outcome.data["packages"]["cpu"]
    assert contents(project / "envs") == before
    new = {file.name: file.read_bytes() for file in candidate.locks("base").iterdir()}
    assert new.keys() == {"cpu.lock", "cuda.lock"} and b"tiny-pack==2.0 --hash=sha256:" in new["cpu.lock"]
    candidate.prepare()
    assert (candidate.project / "envs/base/cpu.lock").read_bytes() == new["cpu.lock"], "the lock that was made stays"
    assert candidate.accept() == ["base"]
    after = contents(project / "envs")
    assert {name for name in after if after[name] != before.get(name)} == {
        "base/requirements.in", "base/cpu.lock", "base/cuda.lock",
    }  # fmt: skip
    assert {after[f"base/{name}"] for name in new} == set(new.values())
    with refused("stale-lock"):
        candidate.accept()


@pytest.mark.slow
def test_why_there_is_no_lock_is_one_sentence(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_NO_INDEX", "1")
    candidate = Candidate("tiny-pack", "3.0", ("base",))
    candidate.prepare()
    upgrade.do_steps(candidate, [])
    outcomes = candidate.outcomes()
    assert outcomes["lock", "base"].failed and "tiny-pack" in outcomes["lock", "base"].sentence
    assert all(one.failed for one in outcomes.values()) and ("verdicts", "base") in outcomes
    assert not candidate.locks("base").exists()
    output = CliRunner().invoke(upgrade.command, ["tiny-pack", "3.0", "--environment", "base"]).output
    assert "what changes:" in output and "accept it:" not in output
    assert "There is no new lock" in (candidate.folder / "index.html").read_text()


def test_the_last_sentence_of_a_log() -> None:
    assert last_sentence("warning\nError: no such run [unknown-name]\nfull log: x\n") == "no such run"
    assert last_sentence("a\nb\n\n") == "b"
    assert last_sentence("") == ""
    uv = "error: No solution found\n  cause: Because there is no version of x==3\nenvs/lock.py: `uv` failed\n"
    assert last_sentence(uv) == "Because there is no version of x==3"


@pytest.fixture
def tried(project: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Steps that count how often they were done; the second fails at first."""
    counts: dict[str, int] = {}

    def count(candidate: Candidate, environment: str) -> checks.Finding:
        counts[environment] = counts.get(environment, 0) + 1
        return checks.Finding(f"done for {environment}", {})

    def fail(candidate: Candidate, environment: str) -> checks.Finding:
        counts["failing"] = counts.get("failing", 0) + 1
        if counts["failing"] == 1:
            raise UserError("it <b>cannot</b> be done", code="step-failed")
        return checks.Finding("done at last", {})

    steps = (
        upgrade.Step("lock", "a lock", upgrade.any_environment, count, needs=""),
        upgrade.Step("defaults", "defaults", "base".__eq__, fail, needs="lock"),
        upgrade.Step("demo", "a run", "base".__eq__, count, needs="defaults"),
        upgrade.Step("evaluation", "one", "eval".__eq__, count, needs="lock"),
    )
    monkeypatch.setattr(upgrade, "STEPS", steps)
    return counts


def test_a_failing_step_is_kept_and_the_others_are_done(project: Path, tried: dict[str, int]) -> None:
    candidate = Candidate("tiny-pack", "2.0", ("base", "eval"))
    upgrade.do_steps(candidate, [])
    assert tried == {"base": 1, "eval": 2, "failing": 1}, "the run needs the step that failed"
    failed = {key for key, one in candidate.outcomes().items() if one.failed}
    assert failed == {("defaults", "base"), ("demo", "base")}
    file = page.write(candidate, "tiny-pack 1.0", candidate.outcomes() | {("verdicts", "base"): None}, "accept")
    text = file.read_text()
    assert "it &lt;b&gt;cannot&lt;/b&gt; be done" in text and "Of 6 steps, 2 failed and 1 have" in text


def test_the_same_command_does_what_is_missing_failed_or_made_from_another_lock(
    project: Path, tried: dict[str, int]
) -> None:
    candidate = Candidate("tiny-pack", "2.0", ("base", "eval"))
    upgrade.do_steps(candidate, [])
    upgrade.do_steps(candidate, [])
    assert tried == {"base": 2, "eval": 2, "failing": 2}
    upgrade.do_steps(candidate, ["evaluation"])
    assert tried == {"base": 2, "eval": 3, "failing": 2}
    (project / "envs" / "base" / "requirements.in").write_text("tiny-pack==1.1\n")
    upgrade.do_steps(candidate, [])
    assert tried == {"base": 3, "eval": 3, "failing": 2}


def test_ctrl_c_keeps_what_is_done(
    project: Path, tried: dict[str, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(candidate: Candidate, environment: str) -> checks.Finding:
        raise KeyboardInterrupt

    first = upgrade.STEPS[0]
    monkeypatch.setattr(upgrade, "STEPS", (first, upgrade.Step("demo", "a run", "base".__eq__, interrupt, "lock")))
    with pytest.raises(SystemExit) as ended:
        upgrade.command.main(["tiny-pack", "2.0"], standalone_mode=False)
    assert ended.value.code == 130 and tried == {"base": 1, "eval": 1}
    assert capsys.readouterr().out.endswith("the same command goes on with this step\n")


def test_changed_versions_and_settings() -> None:
    before, after = {"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"}
    assert changes.changed_versions(before, after) == [["b", "1", "2"], ["c", "1", ""], ["d", "", "1"]]
    settings: dict[str, Any] = changed_settings(
        {"beta": 0.0, "gone": 1, "logs": "then"}, {"beta": 0.04, "new": None, "logs": "now"}, "logs".__eq__
    )
    assert settings == {"changed": {"beta": [0.0, 0.04]}, "new": {"new": None}, "gone": {"gone": 1}}


def test_changed_formulas_are_those_that_rounding_does_not_explain(tmp_path: Path) -> None:
    head = "formula,framework,value,gradient,step,registry\n"
    (tmp_path / "a.csv").write_text(head + "grpo,trl,1e-16,0,0,\nkl,trl,0,0,0,\nrloo,trl,,,,\n")
    (tmp_path / "b.csv").write_text(head + "grpo,trl,3e-16,0,0,\nkl,trl,0.5,0,0,\nrloo,trl,0,0,0,\n")
    rows = changes.changed_formulas(tmp_path / "a.csv", tmp_path / "b.csv")
    assert [row[0] for row in rows] == ["kl", "rloo"]
    assert rows[1][2] == "cannot be expressed"


def test_changed_verdicts_carry_the_label(tmp_path: Path) -> None:
    pairs = [{"gold": "9", "answer": "9\\%", "right": True}, {"gold": "1", "answer": "2"}]
    rows = changes.changed_verdicts(pairs, ["wrong", "correct"], ["correct", "wrong"])
    assert rows == [["9", "9\\%", "wrong", "correct", "right"], ["1", "2", "correct", "wrong", ""]]


def test_a_page_of_all_that_steps_find(project: Path) -> None:
    drift = {"setting": "beta", "stated": 0.0, "released": 0.04, "runs": ["a/b (demo)"]}
    settings = {"changed": {"beta": [0.0, 0.04]}, "new": {}, "gone": {}}
    estimate = [0.5, 0.4, 0.6]
    gain = dict.fromkeys(("base_before", "base_after", "gain_before", "gain_after", "change"), estimate)
    data: dict[str, dict[str, Any]] = {
        "lock": {"packages": {"cpu": [["x", "1", "2"]], "cuda": []}},
        "defaults": {"drifts": [drift], "unknown": ["fresh"], "settings": settings},
        "conformance": {"formulas": [["kl", "trl", "0e+00 / 0e+00 / 0e+00", "5e-01 / 0e+00 / 0e+00"]]},
        "verdicts": {"verdicts": [["9", "<i>9</i>", "wrong", "no_answer", ""]], "pairs": 1336},
        "evaluation": {
            "of": "a/b/seed-0/step-2",
            "evaluations": [
                {"benchmark": "m", "before": estimate, "after": estimate, "change": None, "same": "1 of 2"}
            ],
        },
        "demo": {"run": "a/b", "gains": [{"benchmark": "m", **gain}]},
    }
    steps = {
        (step, "trl"): Outcome(step, "trl", "", False, 1.0, "", json.loads(json.dumps(one)))
        for step, one in data.items()
    }
    text = page.write(Candidate("tiny-pack", "2.0", ("trl",)), "1.0", steps, "accept").read_text()
    for part in (
        "a/b (demo)",
        "fresh",
        "&lt;i&gt;9&lt;/i&gt;",
        "no answer",
        "1,336",
        "1 of 2",
        "other problems",
        "+50.0",
    ):
        assert part in text
