"""The live page: what a training has written so far, read again when it writes more, for this machine alone."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from test_content_policy import check

from analysis import live_log, watch
from contracts import tables
from contracts.run_file import ROOT
from frameworks import rollout_log
from recipes.runs import load_run
from tests import needs
from tests.browser_pipe import Browser
from tests.hostile_text import TEXTS, encodable
from tests.user_errors import printed_code
from tests.waiting import wait_until

NAME = "tinyzero/grpo-3b-trl/seed-0"
STAGE = load_run("tinyzero/grpo-3b-trl", "demo").stages[0]
BATCH = rollout_log.Batch.of_stage(STAGE)
PRINTED = (
    "{{'loss': '0.0', 'grad_norm': '0.5', 'reward': '{reward}', 'kl': '0.01', 'completions/mean_length': '{length}'}}\n"
)


class Training:
    """What a training leaves in its work folder as it goes."""

    def __init__(self, work: Path) -> None:
        self.folder = work / "runs" / NAME / "stage-1-abc"
        self.folder.mkdir(parents=True)
        self.log = self.folder / "train.log"
        self.step, self.writer = 0, rollout_log.Recorder(rollout_log.start_attempt(self.folder, 0).folder)
        self.log.write_text("$ the command\nloading\n")

    def resume(self, step: int) -> None:
        self.step, self.writer = step, rollout_log.Recorder(rollout_log.start_attempt(self.folder, step).folder)
        self.write("$ the command\n")

    def write(self, line: str) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.write(line)

    def do_step(self, text: str, reward: float = 1.0) -> None:
        self.step += 1
        self.writer.write(
            {
                "step": self.step, "problem_id": f"p{number // BATCH.samples:03}", "prompt": "?", "completion": text,
                "reward": reward, "verdict": "correct", "format_error": False,
            }
            for number in range(BATCH.prompts * BATCH.samples)
        )  # fmt: skip
        self.write(PRINTED.format(reward=reward, length=30 + self.step))


def answer(port: int, path: str) -> tuple[int, str | None]:
    """Status and new address of what a browser asks for."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.getheader("Location")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "results" / "demo").mkdir(parents=True)
    return tmp_path / "results" / "demo", tmp_path / "work" / "demo"


@pytest.fixture
def port(folders: tuple[Path, Path]) -> Iterator[int]:
    with watch.make_server(*folders, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield int(serving.server_address[1])
        serving.shutdown()
        thread.join()


def get(port: int, path: str = "/", host: str = "127.0.0.1", method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", f"{host}:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_a_training_is_read_as_it_goes_and_after_it_resumed(folders: tuple[Path, Path]) -> None:
    training = Training(folders[1])
    assert live_log.read_run(*folders, NAME) is None
    for number in (1, 2, 3):
        training.do_step("a", reward=number / 10)
    first = live_log.read_run(*folders, NAME)
    assert first and first.results.log["reward_mean"].round(6).tolist() == [0.1, 0.2, 0.3]
    assert first.results.log["kl"].tolist() == [0.01] * 3 and first.results.log["accuracy"].tolist() == [1.0] * 3
    training.resume(1)
    training.do_step("again", reward=0.9)
    resumed = live_log.read_run(*folders, NAME)
    assert resumed and resumed.results.log["reward_mean"].round(6).tolist()[:2] == [0.1, 0.9]
    assert {row["completion"] for row in resumed.completions} == {"again"}


@pytest.mark.slow
def test_the_page_shows_newest_steps_and_completions_and_no_active_content(
    folders: tuple[Path, Path], port: int
) -> None:
    assert "No training has finished a step yet" in get(port)[1]
    training = Training(folders[1])
    training.do_step("the first")
    status, text = get(port)
    assert status == 200 and "tinyzero demo, GRPO (trl)" in text and "the first" in text
    training.do_step(encodable(TEXTS["script"]))
    later = get(port)[1]
    assert "step 2" in later and "the first" not in later
    page = check(later)
    assert len(page.inline["script"]) == 1 and "default-src 'none'" in page.policies[0]


def test_only_this_machine_and_only_reports_are_served(folders: tuple[Path, Path], port: int) -> None:
    (folders[0] / "report" / "all").mkdir(parents=True)
    (folders[0] / "report" / "all" / "index.html").write_text("the report")
    (folders[0] / "secret.txt").write_text("secret")
    assert get(port, "/report/all/index.html") == (200, "the report")
    assert get(port, host="attacker.example")[0] == 403
    for path in ("/secret.txt", "/report/../secret.txt", "/report/%2e%2e/secret.txt", "/report/", "/runs/"):
        assert get(port, path)[0] == 404, path


@pytest.mark.slow
def test_asked_for_its_state_alone_the_page_answers_with_a_name_that_changes_with_it(
    folders: tuple[Path, Path], port: int
) -> None:
    def state() -> str | None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("HEAD", "/")
        answer = connection.getresponse()
        assert answer.status == 200 and not answer.read()
        return answer.headers["ETag"]

    training = Training(folders[1])
    training.do_step("a")
    first = state()
    assert first == state() and f"data-state={first}" in get(port)[1]
    training.do_step("b")
    assert state() != first


def test_a_run_that_cannot_be_read_is_named_on_the_page(folders: tuple[Path, Path], port: int) -> None:
    stage = folders[0] / "runs" / NAME / "stage-1"
    stage.mkdir(parents=True)
    (stage / "training_log.parquet").write_bytes(b"damaged")
    text = get(port)[1]
    assert f"<b>{NAME}</b> cannot be read" in text and "training_log.parquet" in text


def test_a_run_whose_stages_were_deleted_is_shown_from_its_log(folders: tuple[Path, Path]) -> None:
    log = folders[0] / "runs" / NAME / "training_log.parquet"
    rows = [dict.fromkeys(tables.TRAINING_LOG.names) | {"run": NAME, "stage": 1, "step": 1, "reward_mean": 0.5}]
    tables.write(pa.Table.from_pylist(rows, tables.TRAINING_LOG), tables.TRAINING_LOG, log)
    runs, unreadable = live_log.all_runs(*folders)
    assert [(run.results.name, run.step) for run in runs] == [(NAME, 1)] and not unreadable


def test_a_taken_port_is_no_obstacle(folders: tuple[Path, Path], port: int) -> None:
    with watch.make_server(*folders, port) as other:
        assert other.server_address[0] == "127.0.0.1" and other.server_address[1] != port


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_says_where_it_serves_and_ends_with_ctrl_c(folders: tuple[Path, Path], number: int) -> None:
    command = [sys.executable, "-m", "analysis.watch", "--results", folders[0], "--work", folders[1], "--port", "0"]
    with subprocess.Popen([str(word) for word in command], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = process.stdout.readline().split()[1]
        assert get(int(address.rstrip("/").rpartition(":")[2]))[0] == 200
        process.send_signal(number)
        assert process.stdout.read() == "watch: ended\n" and process.wait() == 0


def wait_for(browser: Browser, code: str, value: object) -> None:
    """Wait until an expression has a value; a page that is being loaded has none."""

    def has_value() -> bool:
        with contextlib.suppress(RuntimeError, KeyError):
            return bool(browser.evaluate(code) == value)
        return False

    wait_until(has_value)


@pytest.mark.slow
@needs.chromium
def test_the_page_is_read_again_when_a_run_goes_on_but_not_under_an_open_completion(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, port: int, tmp_path: Path
) -> None:
    monkeypatch.setattr(watch, "SECONDS", 0.2)
    training = Training(folders[1])
    training.do_step("the first")
    completion = "document.querySelector('main details pre')?.textContent.trim()"
    state = "document.getElementById('connection').textContent"
    with Browser(tmp_path / "profile") as browser:
        browser.open(f"http://127.0.0.1:{port}/")
        wait_for(browser, completion, "the first")
        browser.evaluate("document.querySelector('main details').open = true")
        wait_for(browser, state, "paused while completions are open")
        training.do_step("the second")
        time.sleep(2)
        assert browser.evaluate(completion) == "the first"
        browser.evaluate("document.querySelector('main details').open = false")
        wait_for(browser, completion, "the second")


@pytest.mark.slow
def test_a_port_that_is_none_is_one_sentence(folders: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "analysis.watch", "--results", folders[0], "--work", folders[1], "--port", "99999"]
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, printed_code(done.stderr)) == (1, "argument-out-of-range"), done.stderr


def test_the_reports_are_served_and_nobody_is_sent_elsewhere(folders: tuple[Path, Path], port: int) -> None:
    (page := folders[0] / "report" / "all #1" / "index.html").parent.mkdir(parents=True)
    page.write_text("page")
    assert answer(port, "/report/all%20%231") == (301, "/report/all%20%231/")
    for path in ("/report/all%20%231/", "/report/all%20%231/index.html", "/report/all%20%231/index.html?a=b#c"):
        assert answer(port, path) == (200, None)
    for path in ("/report//host/%2e%2e", "/report//host/..", "/report/", "/report//", "/report///host/%2e%2e"):
        assert answer(port, path) in ((404, None), (301, "/report/./")), path
    for path in (
        "/report/%00",
        "/report/all%20%231/index.html/",
        "/report/../../secret",
        "/report/%ff%fe",
        "/report/[x",
    ):
        assert answer(port, path) == (404, None), path
    assert answer(port, f"/report/{'x' * 5000}") == (404, None)


def test_a_browser_that_hangs_up_is_no_error(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    for request in (b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"):
        with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset at its close
            connection.sendall(request)
    assert answer(port, "/nothing") == (404, None)
    assert "Traceback" not in capfd.readouterr().err
