"""Readers of other harnesses' files: each yields one dictionary per completion, with the columns that it knows.

Besides columns of contracts.tables.SAMPLE a row may have `question` (the question, or a text that contains it),
`right` (whether the other harness called the completion right), and `verdicts` (the same by metric).
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import tables
from eval.importers import inspect_logs
from eval.importers.harness_verdicts import verdicts
from system import json_lines
from system.errors import UserError

Row = dict[str, Any]
PER_COMPLETION = ("finish_reason", "seed", "completion_tokens")  # columns that plain JSONL may have in lists


def numbered_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Rows of a file with their numbers from 1: JSON Lines, or one JSON document; an error names the file and the row.

    A document is a list of objects, an object of equally long lists (`{"prediction": [...], "gold": [...]}`), or one of
    objects by their number, as OpenCompass writes them.
    """
    if not path.is_file():
        raise UserError(
            f"{path} should be a JSONL file, but there is no such file; give the path of the generations",
            code="missing-file",
            path=str(path),
        )
    rows = document_rows(path)
    return enumerate(json_lines.read(path) if rows is None else rows, start=1)


def document_rows(path: Path) -> list[Row] | None:
    """The rows of a file that is one JSON document; None for JSON Lines."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        lines = (line for line in file if line.strip())
        first, second = next(lines, ""), next(lines, None)
    try:
        whole = json.loads(first)
        if second is not None and not isinstance(whole, list):
            return None
    except (ValueError, RecursionError):
        if second is None or first.lstrip()[:1] not in ("{", "["):
            return None
        try:
            whole = json.loads(path.read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError):
            return None  # the reader of JSON Lines names the line
    rows = _rows_of_document(whole)
    columns = whole.values() if rows is None and isinstance(whole, dict) else ()
    if len(columns) > 1 and all(isinstance(column, list) for column in columns):
        lengths = ", ".join(f"{name} {len(column)}" for name, column in whole.items())
        raise UserError(
            f"{path}: its lists should be equally long, one entry a completion, but their lengths differ ({lengths}): "
            "write the file again",
            code="uneven-columns",
        )
    return rows


def _rows_of_document(whole: Any) -> list[Row] | None:
    """The rows in the content of a JSON file; None for a single row."""
    if isinstance(whole, list):
        return whole if all(isinstance(row, dict) for row in whole) else None
    values = list(whole.values()) if isinstance(whole, dict) else []
    if values and all(isinstance(value, list) for value in values) and len({len(value) for value in values}) == 1:
        return [dict(zip(whole, row, strict=True)) for row in zip(*values, strict=True)]
    if values and all(isinstance(value, dict) for value in values) and all(str(key).isdecimal() for key in whole):
        return values
    return None


def _check_texts(value: Any, field: str, where: str) -> list[str]:
    """The completions of a row, checked: otherwise a string would be iterated by character."""
    if value is None or (isinstance(value, list) and None in value):
        raise UserError(
            f'{where}: a completion in {field} is null, such as that of a request that failed: write "" in its place, '
            "which counts as without an answer, or take the row out",
            code="wrong-type",
            field=field,
        )
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        text = json.dumps(value, default=str)
        raise UserError(
            f"{where}: {field} should be a list of strings, the completions, but is "
            f"{text if len(text) <= 80 else text[:80] + '…'}; fix it, or choose the --format that wrote it",
            code="wrong-type",
            field=field,
        )
    return value


def _check_keys(row: Mapping[str, Any], path: Path, number: int, *names: str) -> None:
    missing = [name for name in names if name not in row]
    if missing:
        raise UserError(
            f"{path}, row {number}, should have {', '.join(missing)}, but has {', '.join(map(str, row))}; "
            "choose the --format that wrote it, or split the file if several programs did",
            code="missing-field",
            fields=missing,
            row=number,
        )


def qwen_math(path: Path) -> Iterator[Row]:
    """Qwen2.5-Math's harness: `idx`, `gt`, and `code` with a completion per sample.

    Its `gt` is the gold answer as that harness normalises it, which damages some: `answer` is used where there is one.
    """
    for number, row in numbered_rows(path):
        _check_keys(row, path, number, "idx", "gt", "code")
        scores = row.get("score") or []
        for repeat, completion in enumerate(_check_texts(row["code"], "code", f"{path}, row {number}")):
            yield {
                "problem_id": str(row["idx"]),
                "repeat": repeat,
                "completion": completion,
                "gold": str(row.get("answer") or row["gt"] or ""),
                "question": row.get("question"),
                "right": bool(scores[repeat]) if repeat < len(scores) else None,
            }


def lm_eval(path: Path) -> Iterator[Row]:
    """lm-eval's --log_samples: `doc_id`, `target`, `arguments` with the prompt, and `resps`.

    The file has one line per document and filter. The completions are the same in all; each filter has verdicts.
    """
    lines, metrics = list(numbered_rows(path)), defaultdict[Any, Row](dict)
    for number, row in lines:
        _check_keys(row, path, number, "doc_id", "target", "resps")
        names = row.get("metrics") or ["exact_match"]
        metrics[row["doc_id"]] |= {f"{name},{row.get('filter', 'none')}": row[name] for name in names if name in row}
    first_filter = lines[0][1].get("filter") if lines else None
    for number, row in lines:
        if row.get("filter") != first_filter:
            continue
        arguments = row.get("arguments")
        if isinstance(arguments, dict):  # {"gen_args_0": {"arg_0": prompt, "arg_1": settings}}
            first: dict[str, Any] = next(iter(arguments.values()), {})
            prompt = first.get("arg_0")
        else:
            prompt = arguments[0][0] if arguments else None
        nested = isinstance(row["resps"], list) and row["resps"] and isinstance(row["resps"][0], list)
        responses = _check_texts(row["resps"][0] if nested else row["resps"], "resps", f"{path}, row {number}")
        question = next((row["doc"][name] for name in ("question", "problem") if name in row.get("doc", {})), prompt)
        # Of several responses a metric is the mean, or that of the first
        verdicts_of_one = verdicts(metrics[row["doc_id"]]) if len(responses) == 1 else {}
        for repeat, completion in enumerate(responses):
            yield {
                "problem_id": str(row["doc_id"]),
                "repeat": repeat,
                "completion": completion,
                "gold": str(row["target"]),
                "prompt": prompt if isinstance(prompt, str) else None,
                "question": question if isinstance(question, str) else None,
                "verdicts": verdicts_of_one,
                "right": next(iter(verdicts_of_one.values()), None),
            }


def _parse_cell(value: Any) -> Any:
    """A cell of lighteval's, which is text where its column mixes types."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    try:
        return ast.literal_eval(value)  # literals only: nothing is evaluated
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def _listed(value: Any) -> list[Any]:
    value = _parse_cell(value)
    return value if isinstance(value, list) else [value]


def _lighteval_row(row: Row, path: Path, number: int) -> tuple[Row, list[Any], list[Any]]:
    """The columns that all completions of a row share, the completions, and their tokens."""
    if "model_response" in row:
        _check_keys(row, path, number, "doc")
        doc, response = _parse_cell(row["doc"]), _parse_cell(row["model_response"])
        choices = doc.get("choices") or [""]
        golds = [str(choices[index]) for index in _listed(doc.get("gold_index") or 0)]
        shared = {"problem_id": doc.get("id"), "prompt": response.get("input") or doc.get("query")}
        shared["question"] = doc.get("original_query") or doc.get("query")
        completions, tokens = response.get("text") or [], response.get("output_tokens") or []
    else:
        _check_keys(row, path, number, "gold", "predictions")
        golds = [str(gold) for gold in _listed(row["gold"])]
        shared = {"problem_id": row.get("example_id"), "prompt": row.get("full_prompt")}
        shared["question"] = row.get("example") or row.get("full_prompt")
        completions, tokens = _listed(row["predictions"]), _listed(row.get("cont_tokens") or [])
    prompt = shared["prompt"]
    shared["prompt"] = prompt if isinstance(prompt, str) else None
    return {**shared, "gold": golds[0]}, completions, tokens


def _metrics_of_one(metrics: Any, repeat: int, count: int) -> Row:
    """What the metrics say of one of `count` completions: a list has a value for each, a number is their mean."""
    items = metrics.items() if isinstance(metrics, dict) else ()
    each = {name: value[repeat] for name, value in items if isinstance(value, list) and len(value) == count}
    return each | ({name: value for name, value in items if name not in each} if count == 1 else {})


def lighteval(path: Path) -> Iterator[Row]:
    """lighteval's details (https://huggingface.co/docs/lighteval/saving-and-reading-results).

    Columns `doc`, `model_response`, `metric`; in older releases `full_prompt`, `gold`, `predictions`, `cont_tokens`.
    Of several golds the first is used.
    """
    try:
        details = tables.read_within_bounds(path, path.stat().st_size, path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path} should be a Parquet table of lighteval details but cannot be read ({error})",
            code="damaged-table",
            path=str(path),
        ) from None
    for index, row in enumerate(details):
        shared, completions, tokens = _lighteval_row(row, path, index + 1)
        named = shared["problem_id"] not in (None, "")
        for repeat, completion in enumerate(_check_texts(completions, "the row's text", f"{path}, row {index + 1}")):
            metrics = _parse_cell(row.get("metric") or row.get("metrics") or {})
            verdicts_of_one = verdicts(_metrics_of_one(metrics, repeat, len(completions)))
            yield {
                **shared,
                "verdicts": verdicts_of_one,
                "right": next(iter(verdicts_of_one.values()), None),
                "problem_id": str(shared["problem_id"] if named else index),
                "repeat": repeat,
                "completion": completion,
                "completion_tokens": len(tokens[repeat]) if repeat < len(tokens) and tokens[repeat] else None,
            }


def _verdict_of_one(row: Row, repeat: int, where: str) -> Row:
    """The other harness's verdict on one completion: true or false, 1 or 0, or a list with one for each."""
    if "right" not in row:
        return {}
    right = row["right"]
    if isinstance(right, list):
        right = right[repeat] if repeat < len(right) else None
    if right not in (None, 0, 1):
        raise UserError(
            f"{where}: the verdict should be true or false, 1 or 0, but is {right!r}; fix --map right=…",
            code="value-not-allowed",
            value=right,
        )
    return {"right": None if right is None else bool(right)}


def _values_of_one(row: Row, repeat: int, count: int, where: str) -> Row:
    """What a row says in lists of one of its completions; raises UserError for a list of another length."""
    lists = {column: row[column] for column in PER_COMPLETION if isinstance(row.get(column), list)}
    for column, values in lists.items():
        if len(values) != count:
            raise UserError(
                f"{where}: {column} should have one value, or one for each of the {count} completions, but has "
                f"{len(values)}; fix it, or map another field",
                code="wrong-type",
                field=column,
            )
    return {column: values[repeat] for column, values in lists.items()}


def _user_text(value: Any) -> Any:
    """What the user says in a list of chat messages; any other value as it is."""
    if not isinstance(value, list) or not all(isinstance(message, dict) for message in value):
        return value
    return "\n".join(str(message.get("content")) for message in value if message.get("role") == "user")


def jsonl(path: Path, mapping: Mapping[str, str]) -> Iterator[Row]:
    """Plain JSONL: `mapping` gives the field of each column; `a.b` is field b of object a.

    A completion that is a list gives one repeat per element; an unmapped problem_id is the row's number from 0.
    """
    for index, (number, row) in enumerate(numbered_rows(path)):
        columns: Row = {}
        for column, field in mapping.items():
            value: Any = row
            for part in field.split("."):
                if not isinstance(value, dict) or part not in value:
                    raise UserError(
                        f"{path} has no field {field} in row {number}; fix --map {column}={field}",
                        code="missing-field",
                        field=field,
                        row=number,
                    )
                value = value[part]
            columns[column] = value
        columns["problem_id"] = str(columns.get("problem_id", index))
        columns["gold"] = str(columns.get("gold", ""))
        for column in ("question", "prompt"):
            columns |= {column: _user_text(columns[column])} if column in columns else {}
        completions = columns["completion"] if isinstance(columns["completion"], list) else [columns["completion"]]
        for repeat, completion in enumerate(_check_texts(completions, mapping["completion"], f"{path}, row {number}")):
            verdict = _verdict_of_one(columns, repeat, where=f"{path}, row {number}")
            own = _values_of_one(columns, repeat, len(completions), f"{path}, row {number}")
            yield {"repeat": repeat, **columns, **own, **verdict, "completion": completion}


FORMATS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "qwen-math": qwen_math,
    "lm-eval": lm_eval,
    "lighteval": lighteval,
    "inspect": inspect_logs.read,
}
