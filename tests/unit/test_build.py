"""Environments of a project's folder that was moved, copied, or links to another's (envs/build.py)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envs import build

ENVIRONMENT = "base-cpu-0123456789ab"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with a complete base environment of one script and the program."""
    folder = tmp_path / "project"
    env = folder / ".envs" / ENVIRONMENT
    packages = env / "lib" / "python3.11" / "site-packages"
    for part in (env / "bin", packages, folder / "envs" / "base"):
        part.mkdir(parents=True)
    (env / "bin" / "python").symlink_to(sys.executable)
    (env / "bin" / "activate").write_text(f"# a comment\nVIRTUAL_ENV='{env}'\nexport VIRTUAL_ENV\n")
    script = env / "bin" / "snakemake"
    script.write_text(f"#!{env}/bin/python\nimport sys; print(sys.argv)\n")
    script.chmod(0o755)
    (env / ".stamp").touch()
    for file in ("build.py", "base/cpu.lock"):
        (folder / "envs" / file).touch()
    work_in(folder, monkeypatch)
    install_program(env)
    monkeypatch.setattr(build, "install_program", install_program)
    return folder


def install_program(env: Path) -> None:
    """What `pip install --editable` leaves."""
    (env / "bin" / "crosszero").touch()
    packages = env / "lib" / "python3.11" / "site-packages"
    (packages / "__editable__.crosszero-0.1.0.pth").write_text(f"{build.ENVS.parent}\n")


def work_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let envs/build.py be that of this folder; returns the folder of its environment."""
    monkeypatch.setattr(build, "ENVS", folder / "envs")
    monkeypatch.setattr(build, "TARGET", folder / ".envs")
    monkeypatch.setattr(build, "folder", lambda *_: folder / ".envs" / ENVIRONMENT)
    return folder / ".envs" / ENVIRONMENT


@pytest.mark.parametrize("name", ["moved", "my project", "o'brien", "long" * 30, "two\u2028lines"])
def test_scripts_of_a_moved_folder_start_its_own_python(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (project / ".envs" / ENVIRONMENT / "bin" / "snakemake").read_bytes()
    build.build("base", "cpu")
    assert (project / ".envs" / ENVIRONMENT / "bin" / "snakemake").read_bytes() == before
    for new_name in (name, "back"):
        project = project.rename(project.with_name(new_name))
        env = work_in(project, monkeypatch)
        assert build.is_moved(env) and build.lacks_program("base", env)
        build.build("base", "cpu")
        assert not build.is_moved(env) and not build.lacks_program("base", env)
        ran = subprocess.run([env / "bin" / "snakemake", "a b"], capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == str([str(env / "bin" / "snakemake"), "a b"])
        assert str(env.parent) in (env / "bin" / "snakemake").read_text()
        activated = f'. "{env}/bin/activate"; printf %s "$VIRTUAL_ENV"'
        assert subprocess.run(["sh", "-c", activated], capture_output=True, text=True).stdout == str(env)


def test_an_environment_from_before_the_program_gets_it(project: Path) -> None:
    env = project / ".envs" / ENVIRONMENT
    for file in (env / "bin" / "crosszero", next(env.glob("lib/*/*/__editable__*"))):
        file.unlink()
        assert build.lacks_program("base", env) and not build.lacks_program("eval", env)
        build.build("base", "cpu")
        assert not build.lacks_program("base", env)


def test_a_copy_does_not_run_the_code_of_the_first(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Path(shutil.copytree(project, project.with_name("copy"), symlinks=True))
    env = work_in(copy, monkeypatch)
    build.build("base", "cpu")
    assert next(env.glob("lib/*/*/__editable__*")).read_text().strip() == str(copy)
    assert f"#!{env}/bin/python" in (env / "bin" / "snakemake").read_text()


def test_environments_that_another_copy_owns_are_only_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = project.with_name("guest")
    shutil.copytree(project / "envs", guest / "envs")
    (guest / ".envs").symlink_to(project / ".envs")
    files = {file: file.stat().st_mtime_ns for file in (project / ".envs" / ENVIRONMENT).rglob("*") if file.is_file()}
    build.build("base", "cpu")
    work_in(guest, monkeypatch)
    build.build("base", "cpu")
    assert all(file.stat().st_mtime_ns == time for file, time in files.items())
