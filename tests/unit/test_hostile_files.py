"""Files that are made to take all time or memory end in one sentence: sizes are looked at before content is."""

from __future__ import annotations

import gzip
import json
import os
import time
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jinja2 import Template

from contracts import chat_template, model_folder, paths, tables
from contracts.run_file import inherit
from eval import score
from eval.importers import formats, import_samples, inspect_logs, recognise_file
from system import bounded_fork, errors, unpack
from tasks import dataset_sources, prompts
from tests.unit.test_model_sources import whole
from tests.user_errors import refused

LOOPS = "".join(f"{{% for {name} in range(9999) %}}" for name in "abc") + "{% endfor %}" * 3
ASKED = "{{ messages[0]['content'] }}"


@pytest.mark.parametrize(
    "part",
    [
        "{{1/0}}", "{{2.0**100000}}", "{{'a'*10**10}}", "{{'a'.center(9999999999)}}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", pytest.param(
            "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
            marks=pytest.mark.slow,
        ), *(pytest.param(part, marks=pytest.mark.long) for part in (LOOPS, "{{'%0999999999d' % 1}}", "{{'a'*10**8}}")),
    ],
)  # fmt: skip
def test_a_template_that_takes_all_time_or_memory_is_refused(part: str) -> None:
    assert chat_template.problem(part + ASKED).startswith("cannot render a user's message (")
    hidden = "{% if not add_generation_prompt %}" + part + "{% endif %}" + ASKED
    assert chat_template.problem(hidden).partition(" (")[0] in ("", "cannot render a user's message")
    assert chat_template.opens_a_turn(hidden)


@pytest.mark.slow
def test_what_a_template_says_of_itself_is_short() -> None:
    assert len(chat_template.problem("{{raise_exception('x' * 10 ** 6)}}")) < 300
    with refused("prompt-refused-by-template"):
        prompts.load("boxed").render("2+3?", chat_template.Renderer("{{raise_exception('\\n' * 10 ** 6)}}"))


@pytest.mark.parametrize("name", ["chat_template.jinja", "merges.txt", "tokenizer.model", "added_tokens.json"])
def test_a_long_file_of_a_model_is_refused_by_its_size(name: str, tmp_path: Path) -> None:
    folder = whole(tmp_path / "model")
    model_folder.check_files(folder)
    with (folder / name).open("wb") as file:
        file.truncate(20 << 30)  # takes no room
    with refused("damaged-model"):
        model_folder.check_files(folder)


def end(status: int) -> bytes:
    os._exit(status)


@pytest.mark.parametrize("work", [lambda: end(3), lambda: bytes(17 << 20), lambda: bytes(1 << 40), lambda: 1 / 0])
def test_a_fork_past_its_limits_leaves_no_process(work: Callable[[], bytes]) -> None:
    before = psutil.Process().children()
    with pytest.raises(bounded_fork.PastLimit):
        bounded_fork.call(work)
    assert psutil.Process().children() == before and bounded_fork.call(lambda: b"text") == b"text"


@pytest.mark.parametrize(
    "header",
    [
        {"w": {"data_offsets": [-16, 16]}}, {"w": {"data_offsets": [0, 8]}, "v": {"data_offsets": [4, 16]}},
        {"w": {"data_offsets": [16, 0]}}, {"w": {"data_offsets": ["0", "16"]}}, {"w": {"data_offsets": [4, 16]}},
        {"w": {"data_offsets": []}}, [],
    ],
)  # fmt: skip
def test_weights_whose_header_lies_are_damaged(header: Any, tmp_path: Path) -> None:
    text, file = json.dumps(header).encode(), tmp_path / "model.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(16))
    assert model_folder.tensor_names(file) is None


def test_a_long_header_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes((20 << 30).to_bytes(8, "little") + b"{")
    os.truncate(file, (20 << 30) + 100)  # takes no room
    assert model_folder.tensor_names(file) is None


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_log_that_unpacks_to_more_than_a_log_is_refused(
    packing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "LEAST", 1 << 20)
    with zipfile.ZipFile(tmp_path / "x.eval", "w", packing) as archive:
        archive.writestr("samples/1.json", b'{"id": "' + b"a" * (2 << 20) + b'"}')
    with refused("damaged-log"):
        list(inspect_logs.read(tmp_path / "x.eval"))
    monkeypatch.setattr(inspect_logs, "MOST_LOG", 1 << 20)
    with refused("damaged-log"):
        list(inspect_logs.read(tmp_path / "x.eval"))


def test_a_table_of_many_rows_is_refused_by_its_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 10)
    names = {*tables.SAMPLE.names, "doc", "model_response", "metric"}
    pq.write_table(pa.table({name: pa.array([None] * 11, pa.string()) for name in names}), tmp_path / "many.parquet")
    with refused("too-large-table", rows=11):
        tables.read(tmp_path / "many.parquet", tables.SAMPLE)
    with refused("too-large-table", rows=11):
        list(formats.lighteval(tmp_path / "many.parquet"))
    pq.write_table(pa.table({"completion": ["x"] * 11}), tmp_path / "many.parquet")
    with refused("too-large-table", rows=11):
        recognise_file._recognise_table(tmp_path / "many.parquet", {})


def test_a_repeat_of_two_billion_is_counted_and_not_listed() -> None:
    row = dict.fromkeys(tables.GRADED.names) | {"problem_id": "p", "repeat": 2**31 - 2, "verdict": "wrong"}
    with refused("missing-samples"):
        score.check_complete(pa.Table.from_pylist([row], schema=tables.GRADED).to_pandas(), "here", ["p", "q"])


def test_a_hundred_thousand_repeats_of_one_problem_are_numbered_in_time() -> None:
    rows = [{"problem_id": "p", "repeat": 0} for _ in range(100_000)]
    begin = time.process_time()
    import_samples.number_repeats(rows)
    assert [row["repeat"] for row in rows] == list(range(100_000)) and time.process_time() - begin < 60
    mixed = [{"problem_id": "p", "repeat": repeat} for repeat in (1, 0, 0, 1, 5)]
    import_samples.number_repeats(mixed)
    assert [row["repeat"] for row in mixed] == [1, 0, 2, 3, 5]


@pytest.mark.parametrize("name", ["../other/grpo", "/etc/passwd", "a/b", "..", ""])
def test_a_run_extends_runs_of_its_own_recipe(name: str, tmp_path: Path) -> None:
    with refused("extends-elsewhere" if name != ".." else "missing-file"):
        inherit({"extends": name}, tmp_path / "run.yaml")


def test_other_kinds() -> None:
    with refused("unusable-path"):
        paths.check_path("results", "results/<word>")
    codes = [errors.as_user_error(error) for error in (OSError(27, "too large"), OSError(12, "memory"), MemoryError())]
    assert [error and error.code for error in codes] == ["file-too-long", "out-of-memory", "out-of-memory"]


@pytest.mark.slow
@pytest.mark.parametrize("packing", ["gzip", "bz2", "zstd"])
def test_generations_that_unpack_to_more_than_text_are_refused(packing: str, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl.packed"
    with pa.output_stream(str(file), compression=packing) as stream:
        for _ in range(130):
            stream.write(b'{"completion": "' + b"a" * (1 << 20) + b'", "gold": "1"}\n')
    with refused("damaged-file"):
        recognise_file.read_generations(file)


@pytest.mark.slow
def test_a_data_set_that_unpacks_to_more_than_text_is_refused() -> None:
    packed = gzip.compress(b'{"question": "' + b"a" * (65 << 20) + b'"}\n', 1)
    for name in ("x.jsonl.gz", "x.json.gz", "x.csv.gz"):
        with refused("unreadable-rows"):
            dataset_sources.parse_rows(name, packed)
    with refused("unreadable-rows"):
        dataset_sources.parse_rows("x.jsonl.gz.gz", gzip.compress(packed))
    assert dataset_sources.parse_rows("x.jsonl.gz", gzip.compress(b'{"a": 1}\n')) == [{"a": 1}]


@pytest.mark.slow
def test_a_table_of_one_long_text_in_every_row_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LEAST_BYTES", 1 << 26)
    text = pa.array(["a" * 10_000])
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), text)
    others = dict.fromkeys({*tables.SAMPLE.names, "doc", "metric"}, pa.nulls(20_000, pa.string()))
    pq.write_table(pa.table(others | dict.fromkeys(("completion", "model_response"), rows)),
                   tmp_path / "long.parquet", store_schema=False)  # fmt: skip
    assert (tmp_path / "long.parquet").stat().st_size < 1 << 20
    content = (tmp_path / "long.parquet").read_bytes()
    for read in (
        lambda: tables.read(tmp_path / "long.parquet", tables.SAMPLE),
        lambda: list(formats.lighteval(tmp_path / "long.parquet")),
        lambda: dataset_sources.parse_rows("long.parquet", content),
    ):
        with refused("too-large-table", rows=20_000):
            read()


RARE = "{% if 'seven' in messages[0]['content'] %}" + "{part}" + "{% endif %}" + ASKED


class Unlimited(chat_template.Renderer):
    """As a trainer's tokenizer renders: without limits."""

    def apply_chat_template(self, messages: Any, *, tokenize: bool = False, **variables: Any) -> str:
        return compiled(self.chat_template).render(messages=messages, **variables)


@cache
def compiled(template: str) -> Template:
    return chat_template._environment().from_string(template)


@pytest.mark.parametrize("part", [pytest.param(LOOPS, marks=pytest.mark.long), "{{1/0}}", "{{'a'*10**10}}"])
def test_a_template_that_is_hostile_to_some_questions_alone_is_refused(part: str) -> None:
    template, prompt = RARE.replace("{part}", part), prompts.load("demystify")
    assert chat_template.problem(template) == ""
    texts = [prompt.messages(question)[0]["content"] for question in ("2+3?", "4?")]
    assert prompt.render_all(["2+3?", "4?"], Unlimited(template)) == texts
    with refused("prompt-refused-by-template"):
        prompt.render_all(["2+3?", "what is seven?"], Unlimited(template))


def test_many_prompts_are_rendered_in_one_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = bounded_fork.call
    monkeypatch.setattr(bounded_fork, "call", lambda *what, **more: calls.append(more) or real(*what, **more))
    prompt, questions = prompts.load("demystify"), [f"{number} \ud800?" for number in range(10_000)]
    texts = [prompt.messages(question)[0]["content"] for question in questions]
    assert prompt.render_all(questions, Unlimited(ASKED)) == texts
    assert calls == [{"items": 10_000}]
