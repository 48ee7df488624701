"""What a terminal shows of a failed job: the sentence, or ten lines that say something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cluster import failed_jobs
from system.text_safety import visible

PROGRAM = """
import sys
for number in range(30): print(f"line {number}")
print("Loading:  50%|#####     | 1/2 [00:01<00:01,  1.2s/it]", file=sys.stderr)
print()
def deep(number): return deep(number - 1) if number else {}["missing"]
deep(20)
"""


def test_ten_lines_that_say_something(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as file:
        subprocess.run([sys.executable, "-u", "-c", PROGRAM], stdout=file, stderr=file, check=False)
    lines = failed_jobs.relevant_lines(failed_jobs.last_lines(log, failed_jobs.READ))
    assert lines == [*(f"line {number}" for number in range(21, 30)), "KeyError: 'missing'"]


def test_actors_of_ray_have_tracebacks_too() -> None:
    prefix = visible("\x1b[36m(WorkerDict pid=123, ip=10.0.0.1)\x1b[0m ")
    lines = [
        f"{prefix}{text}" for text in ("Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: x")
    ]
    assert failed_jobs.relevant_lines(["before", *lines, ""]) == ["before", lines[-1]]


def test_the_sentence_is_shown_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a\nb\nError: the file is missing; make it\n")
    assert failed_jobs.relevant_lines(failed_jobs.last_lines(log)) == ["Error: the file is missing; make it"]
