"""What bash itself makes of a launch script, with every program a stub: a check on what was read of it.

bash runs in a sandbox (bubblewrap). It has no network, and no files but those of the script and of some programs,
such as cat. Without bubblewrap nothing is checked.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from system.errors import UserError
from tasks.sandbox import bubblewrap
from translate.shell.interpreter import Interpreter
from translate.shell.values import as_written, is_unknown, pieces, stated_arguments

STUB = Path(__file__).with_name("bash_stub.sh")
WALL_S = 10.0  # a script that takes longer, as some wait for what no stub does, is not checked
PROGRAMS = (
    "bash", "env", "cat", "grep", "seq", "basename", "dirname", "expr", "cp", "mv", "rm", "mkdir", "touch", "ln",
    "chmod", "tee", "sed", "tr", "cut", "head", "wc", "sort", "true", "false", "echo", "printf",
)  # fmt: skip
LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/bin")


def refuse_other_trainings(reader: Interpreter, text: str) -> None:
    """Refuse a script of which bash starts a training with other settings than were read.

    Args:
        reader: that has followed the script.
        text: of the script.

    Raises:
        UserError: bash starts another training.
    """
    trainings = [call.arguments[call.start + 1 :] for call in reader.calls]
    for program in started_programs(reader, text):
        start = reader.training_word(program) if program else None
        if start is not None and not any(_fits(training, program[start + 1 :]) for training in trainings):
            raise _otherwise(trainings, program[start + 1 :])


def started_programs(reader: Interpreter, text: str) -> list[list[str]]:
    """The words of each program that bash starts as it follows a script; see refuse_other_trainings."""
    if shutil.which("bwrap") is None:
        return []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as started:
        for name, content in {**reader.beside, "script.sh": text}.items():
            if _is_within(name):
                file = Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content, encoding="utf-8", errors="surrogateescape")
        arguments = stated_arguments(reader.outside) or []
        command = [*_sandbox(reader, folder, started), "bash", "/usr/bin/stub.sh", "script.sh", *arguments]
        with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError):
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WALL_S, check=False)
        files = [file for file in sorted(Path(started).iterdir()) if file.is_file() and not file.is_symlink()]
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return [program.split("\0")[:-1] for text in texts for program in text.split("\1\0")[:-1]]


def _can_be_made(name: str) -> bool:
    """Whether a file, whose name is known, may stand in the sandbox."""
    return not is_unknown(name) and ".." not in PurePosixPath(name).parts and not name.startswith(("/proc", "/dev"))


def _is_within(name: str) -> bool:
    """Whether a file is in the script's folder, or below it."""
    return not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts


def _sandbox(reader: Interpreter, folder: str, started: str) -> list[str]:
    options = [*bubblewrap.sandbox_options(), "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
    for library in map(Path, LIBRARIES):
        if library.is_symlink():
            options += ["--symlink", str(library.readlink()), str(library)]
        elif library.is_dir():
            options += ["--ro-bind", str(library), str(library)]
    for program in PROGRAMS:
        if source := shutil.which(program, path="/usr/bin:/bin"):
            options += ["--ro-bind", source, f"/usr/bin/{program}"]
    options += ["--ro-bind", str(STUB), "/usr/bin/stub.sh", "--bind", started, "/started"]
    options += ["--bind", folder, "/work", "--chdir", "/work"]
    for program in {call.arguments[0] for call in reader.calls if "/" in call.arguments[0]}:
        if _can_be_made(program) and PurePosixPath(program).name not in PROGRAMS:
            options += ["--symlink", "/usr/bin/stub.sh", str(PurePosixPath("/work", program))]
    for parent in filter(_can_be_made, {str(PurePosixPath("/work", file).parent) for file in reader.state.files}):
        options += ["--dir", parent]
    variables = {"HOME": "/root"} | {name: value for name, value in reader.outside.items() if name.isidentifier()}
    for name, value in (variables | {"PATH": "/usr/bin"}).items():
        options += ["--setenv", name, value]
    return [*options, "--unsetenv", "LD_LIBRARY_PATH"]


def _fits(read: Sequence[str], started: Sequence[str]) -> bool:
    """Whether words that were read, with unknown parts that may be anything, are those that bash gives."""
    known, text = [""], "".join(f"\0{word}" for word in started)
    for word in read:
        parts = pieces(word)
        known[-1] += "\0" * (not parts or not all(map(is_unknown, parts)))  # one that is unknown may be no word
        for part in parts:
            if is_unknown(part):
                known.append("")
            else:
                known[-1] += part
    first, *others = known
    if not others:
        return text == first
    position = len(first) if text.startswith(first) else -1
    for part in others[:-1]:
        position = text.find(part, position) + len(part) if position >= 0 and part in text[position:] else -1
    return 0 <= position <= len(text) - len(others[-1]) and text.endswith(others[-1])


def _otherwise(trainings: Sequence[Sequence[str]], started: Sequence[str]) -> UserError:
    """The error; it shows the first word that differs from the training that agrees longest."""

    def agreeing(read: Sequence[str]) -> int:
        return next((at for at, word in enumerate(started) if not _fits(read[at : at + 1], [word])), len(started))

    read = max(trainings, key=agreeing)
    number = agreeing(read)
    theirs = f"'{started[number]}'" if number < len(started) else "the end"
    ours = f"'{as_written(read[number])}'" if number < len(read) else "the end"
    return UserError(
        f"bash starts this script's training with other words than were read: {theirs} where {ours} was read; paste "
        "the training command alone, as `bash -x` shows it",
        code="read-otherwise",
    )
