"""Which program wrote a file of generations: decided by its content, never by its name."""

from __future__ import annotations

import codecs
import csv
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contracts import tables
from eval.importers.formats import Row, document_rows
from eval.importers.import_samples import read_rows
from system import unpack
from system.errors import UserError

OUR_SAMPLES = "crosszero"  # a table of our own samples, without verdicts
TITLES = {
    "qwen-math": "Qwen2.5-Math's harness",
    "lm-eval": "lm-eval (--log_samples)",
    "lighteval": "lighteval (details)",
    "inspect": "inspect_ai",
    "jsonl": "a plain table",
    OUR_SAMPLES: "CrossZero (samples)",
}
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
FIELDS = {  # of plain tables: names under which each of our columns is looked for, the likeliest first
    "completion": (
        "completion", "completions", "response", "responses", "generation", "generations", "output", "outputs",
        "generated_text", "model_output", "model_response", "prediction", "predictions",
    ),
    "question": ("question", "problem", "query", "input", "instruction"),
    "prompt": ("prompt", "full_prompt", "messages"),
    "gold": ("gold", "ground_truth", "gt", "target", "reference_answer", "expected_answer", "answer", "label"),
    "problem_id": ("problem_id", "unique_id", "id", "idx", "task_id", "question_id"),
    "repeat": ("repeat", "sample_index", "epoch"),
    "finish_reason": ("finish_reason",),
    "right": ("right", "correct", "is_correct", "score"),
}  # fmt: skip
ANSWERS = (*FIELDS["completion"], "solution", "text")  # of one model, in an object of its own
LISTED = 12  # names in a message


class Generations(NamedTuple):
    """The rows of one file, as eval.importers.formats gives them, and the layout in which they were written."""

    path: Path
    layout: str
    rows: list[Row]


class Source(NamedTuple):
    """A file of a command line: whether it was named, not only its folder, and which of its models is meant."""

    path: Path
    named: bool = True
    model: str = ""


class _NoGenerations(UserError):
    """The file holds something else; in a folder it is left out."""


def expand(names: Sequence[str]) -> list[Source]:
    """The files of a command line: files, patterns such as `*.jsonl`, and folders, of which all files are meant.

    A file with the completions of several models is named with one of them: `solutions.jsonl#model`.

    Returns:
        Each once; of a folder, what holds no generations may be left out.

    Raises:
        UserError: there is no such file, or none in the folder.
    """
    files: dict[tuple[Path, str], bool] = {}
    for name in names:
        path, model = split_model(name)
        matches = [path] if path.exists() else sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if not matches:
            raise UserError(f"there is no file or folder {name}: check the path", code="missing-file", path=name)
        for match in matches:
            if match.is_file():
                files[match, model] = True
                continue
            if not match.is_dir():
                sentence = f"{match} is a pipe or a device, and is read more than once: write its content to a file"
                raise UserError(sentence, code="no-regular-file", path=name)
            inside = sorted(file for file in match.rglob("*") if file.is_file() and not file.name.startswith("."))
            if not inside:
                raise UserError(f"the folder {match} has no files: check the path", code="no-generations", path=name)
            files = {(file, ""): False for file in inside} | files
    return [Source(path, named, model) for (path, model), named in files.items()]


def split_model(name: str) -> tuple[Path, str]:
    """The path and the model of `solutions.jsonl#model`; no model where the whole name is a path."""
    file, mark, model = name.rpartition("#")
    return (Path(file), model) if mark and not Path(name).exists() else (Path(name), "")


def read_generations(path: Path, mapping: Mapping[str, str] | None = None, model: str = "") -> Generations:
    """Recognise a file and read it.

    Args:
        path: may be compressed (gzip, bzip2, Zstandard).
        mapping: fields of a plain table by our columns, instead of those that are guessed.
        model: which one's completions, where the rows have an object for each.

    Raises:
        UserError: it is no such file, is damaged or cut, or no field of it is known to hold completions.
    """
    with _decompressed(path) as plain:
        try:
            layout, file, fields = _recognise(plain, {"model": model} | dict(mapping or {}))
            rows = read_rows("jsonl" if fields else layout, [file], fields)
        except UserError as error:  # what was unpacked or rewritten for reading has the name of the file
            text = str(error).replace(str(plain.with_name(REWRITTEN)), str(path)).replace(str(plain), str(path))
            raise type(error)(text, code=error.code, **error.facts) from None
    if not any(row["completion"].strip() for row in rows):
        raise UserError(f"{path} has {len(rows)} rows, but no completion in any of them", code="no-completions")
    return Generations(path, layout, rows)


REWRITTEN = "rewritten.jsonl"  # rows of another layout, as JSON Lines


@contextmanager
def _decompressed(path: Path) -> Iterator[Path]:
    """The file, or its unpacked copy, in a folder for what is rewritten."""
    if path.is_file() and not path.stat().st_size:
        raise _NoGenerations(f"{path} is empty: it should hold generations", code="no-generations", path=str(path))
    with tempfile.TemporaryDirectory() as folder:
        with path.open("rb") as file:
            head = file.read(4)
        plain = Path(folder) / "unpacked"
        compression = next((name for magic, name in COMPRESSED.items() if head.startswith(magic)), None)
        if compression is None:
            plain.symlink_to(path.resolve())
        else:
            try:
                with pa.input_stream(str(path), compression=compression) as stream, plain.open("wb") as file:
                    file.writelines(unpack.parts(stream, path.stat().st_size))
            except (OSError, ValueError, pa.ArrowException) as error:
                raise UserError(
                    f"{path} cannot be unpacked as {compression} ({error}): copy it again", code="damaged-file"
                ) from None
        yield plain


def _recognise(path: Path, mapping: dict[str, str]) -> tuple[str, Path, dict[str, str] | None]:
    """The layout, the file to be read, and for plain tables the field of each column."""
    with path.open("rb") as file:
        head = file.read(4)
    if head == b"PK\x03\x04":
        return "inspect", path, None
    if head == b"PAR1":
        return _recognise_table(path, mapping)
    with path.open("rb") as file:
        line = next((line for line in file if line.strip()), b"").removeprefix(codecs.BOM_UTF8).strip()
    if line[:1] not in (b"{", b"["):
        return _recognise_rows(path, _csv_rows(path), mapping)
    if (rows := document_rows(path)) is not None:
        return _recognise_rows(path, rows, mapping)
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        first = _whole_document(path, line)
    if isinstance(first, list):
        return _recognise_rows(path, [row for row in first if isinstance(row, dict)], mapping)
    if isinstance(first, dict) and isinstance(first.get("samples"), list) and "eval" in first:
        return "inspect", path, None
    if not isinstance(first, dict):
        raise _not_generations(path, "it is JSON, but neither objects nor a list of them")
    layout, fields = _layout_of_row(path, first, mapping)
    return layout, path, fields


def _whole_document(path: Path, line: bytes) -> Any:
    """The content of a file that is JSON over several lines; the object of its first line where it is JSON Lines."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8 text (byte {error.start + 1}); save it as UTF-8", code="not-utf8"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path}: neither its first line nor the whole file is JSON ({error}): finish the file, or copy it again",
            code="invalid-json",
            line=1,
        ) from None


def _recognise_table(path: Path, mapping: dict[str, str]) -> tuple[str, Path, dict[str, str] | None]:
    """The same of a Parquet file."""
    try:
        schema = pq.read_schema(path)
        names = set(schema.names)
        if {"doc", "model_response"} <= names or {"full_prompt", "gold", "predictions"} <= names:
            return "lighteval", path, None
        if set(tables.GRADED.names) - tables.ADDED <= names:
            raise UserError(
                f"{path} is a table of verdicts, which is graded already: crosszero show {path} prints it, crosszero "
                "compare takes it as it is",
                code="graded-already",
            )
        rows = tables.read_within_bounds(path, path.stat().st_size, path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path} should be a Parquet table but cannot be read ({error}): copy it again", code="damaged-table"
        ) from None
    if set(tables.SAMPLE.names) <= names:
        columns = ("problem_id", "repeat", "seed", "prompt", "finish_reason", "prompt_tokens", "completion_tokens")
        _, file, fields = _recognise_rows(path, rows, {name: name for name in (*columns, "completion", "gold")})
        return OUR_SAMPLES, file, fields
    return _recognise_rows(path, rows, mapping)


def _csv_rows(path: Path) -> list[Row]:
    """The rows of comma, semicolon or tab separated values with a header."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        header = text.partition("\n")[0]
        delimiter = max(",;\t", key=header.count)
        if header.count(delimiter):
            csv.field_size_limit(len(text) + 1)
            with path.open(encoding="utf-8-sig", newline="") as file:
                rows: list[Row] = list(csv.DictReader(file, delimiter=delimiter, strict=True))
            if rows and not any(None in row or None in row.values() for row in rows):
                return rows
    except (UnicodeDecodeError, csv.Error):
        pass
    raise _not_generations(path, "it is neither JSON, Parquet, a log of inspect_ai nor a table with a header")


def _recognise_rows(path: Path, rows: list[Row], mapping: dict[str, str]) -> tuple[str, Path, dict[str, str] | None]:
    """The same of rows in memory, which are rewritten as JSON Lines."""
    if not rows:
        raise _not_generations(path, "it has no rows")
    layout, fields = _layout_of_row(path, rows[0], mapping)
    file = path.with_name(REWRITTEN)
    file.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), encoding="utf-8")
    return layout, file, fields


def _layout_of_row(path: Path, row: Row, mapping: dict[str, str]) -> tuple[str, dict[str, str] | None]:
    """The layout of JSON Lines by their first row, and for plain ones the field of each column."""
    model = mapping.pop("model", "")
    if not (model or mapping) and {"idx", "gt", "code"} <= row.keys():
        return "qwen-math", None
    if not (model or mapping) and {"doc_id", "target", "resps"} <= row.keys():
        return "lm-eval", None
    if {"results", "configs"} <= row.keys():
        raise _not_generations(path, "it is lm-eval's table of results: give the samples_*.jsonl of --log_samples")
    guessed = {column: next((n for n in names if _holds(column, row.get(n))), None) for column, names in FIELDS.items()}
    fields = {column: name for column, name in guessed.items() if name is not None} | mapping
    if null := [name for name in FIELDS["completion"] if name in row and row[name] is None]:
        fields.setdefault("completion", null[0])  # refused where it is read
    models = {
        name: next((field for field in ANSWERS if isinstance(value.get(field), str)), "")
        for name, value in row.items()
        if isinstance(value, dict)
    }
    if models.get(model):
        fields["completion"] = f"{model}.{models[model]}"
    if "completion" in fields and (models.get(model) or not model):
        return "jsonl", _verdict_beside(row, fields["completion"]) | fields
    if choices := [name for name, field in models.items() if field]:
        raise UserError(
            f"{path} has the completions of {len(choices)} models, {', '.join(choices[:LISTED])}: name one behind the "
            f"file, such as {path}#{choices[0]}",
            code="several-models",
            choices=choices,
        )
    named = ", ".join(list(map(str, row))[:LISTED])
    raise _not_generations(path, f"none of its fields, {named}, is known to hold completions (--map completion=FIELD)")


def _verdict_beside(row: Row, field: str) -> dict[str, str]:
    """The field of the verdict in the object that holds the completion, `model.is_correct` beside `model.solution`."""
    model, _, _ = field.rpartition(".")
    inside = row.get(model)
    names = [name for name in FIELDS["right"] if isinstance(inside, dict) and _holds("right", inside.get(name))]
    return {"right": f"{model}.{names[0]}"} if names else {}


def _holds(column: str, value: Any) -> bool:
    """Whether a value can be one of this column."""
    if column in ("completion", "question"):
        texts = value if isinstance(value, list) else [value]
        return bool(texts) and all(isinstance(text, str) for text in texts)
    if column == "right":
        return all(one in (None, 0, 1) for one in (value if isinstance(value, list) else [value])) and value is not None
    if column == "repeat":
        return isinstance(value, int)
    return value is not None and not isinstance(value, dict)


def _not_generations(path: Path, why: str) -> UserError:
    return _NoGenerations(f"{path} is not recognised as generations: {why}", code="not-generations", path=str(path))


def read_all(names: Sequence[str], mapping: Mapping[str, str] | None = None) -> tuple[list[Generations], list[Path]]:
    """The generations of a command line, of one layout, and the files of its folders that hold none.

    Raises:
        UserError: a named file holds none, no file of a folder does, or the files are of several layouts.
    """
    read, others = [], []
    for source in expand(names):
        try:
            read.append(read_generations(source.path, mapping, source.model))
        except _NoGenerations:
            if source.named:
                raise
            others.append(source.path)
    if not read:
        raise UserError(
            f"{', '.join(names)} should be generations, a model's folder (config.json, weights and tokenizer) or what "
            f"crosszero convert takes, but none of its {len(others)} files is one of these, such as {others[0]}",
            code="not-generations",
        )
    examples = {generations.layout: generations.path for generations in read}
    if len(examples) > 1:
        listed = ", ".join(f"{path} is of {TITLES[layout]}" for layout, path in examples.items())
        raise UserError(
            f"files of several formats are not graded as one: {listed}; grade each by itself", code="mixed-formats"
        )
    return read, others
