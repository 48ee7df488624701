"""Readers of other harnesses' files: each yields one dictionary per completion, with the columns that it knows.

Besides columns of contracts.tables.SAMPLE a row may hold `question` (the question, or a text that holds it) and `right`
(what the other harness said of the completion).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.errors import UserError

Row = dict[str, Any]


def numbered_lines(path: Path) -> Iterator[tuple[int, Row]]:
    """Rows of a JSONL file, each with the number of its line; an error names the file and the line."""
    number = 0
    try:
        with path.open("rb") as lines:  # decoded one by one: a text file is read ahead, and fails before the wrong line
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    row = json.loads(line.decode("utf-8"))
                    if not isinstance(row, dict):
                        raise ValueError(f"a {type(row).__name__} and no object")
                    yield number, row
    except FileNotFoundError:
        raise UserError(f"{path} should be a JSONL file but is not there; give the path of the generations") from None
    except ValueError as error:
        raise UserError(f"{path} should be JSONL, one object per line, but line {number} is not: {error}") from None


def json_lines(path: Path) -> Iterator[Row]:
    """Rows of a JSONL file; an error names the file and the line."""
    return (row for _, row in numbered_lines(path))


def _texts(value: Any, field: str, place: str) -> list[str]:
    """The completions of a row, checked: a text would else be taken as a list of letters, and null as a completion."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        found = json.dumps(value, default=str)
        raise UserError(
            f"{place}: {field} should be a list of completions, each a text, but is "
            f"{found if len(found) <= 80 else found[:80] + '…'}; mend it, or choose the --format that wrote it"
        )
    return value


def _need(row: Mapping[str, Any], path: Path, *names: str) -> None:
    missing = [name for name in names if name not in row]
    if missing:
        raise UserError(
            f"{path} lacks {', '.join(missing)} (found: {', '.join(map(str, row))}); choose the --format that wrote it"
        )


def qwen_math(path: Path) -> Iterator[Row]:
    """Qwen2.5-Math's harness: `idx`, `gt`, and `code` with a completion per sample.

    Its `gt` is the gold answer as that harness normalises it; where that leaves nothing, `answer` is taken.
    """
    for number, row in numbered_lines(path):
        _need(row, path, "idx", "gt", "code")
        scores = row.get("score") or []
        for repeat, completion in enumerate(_texts(row["code"], "code", f"{path}, line {number}")):
            yield {
                "problem_id": str(row["idx"]),
                "repeat": repeat,
                "completion": completion,
                "gold": str(row["gt"] or row.get("answer") or ""),
                "question": row.get("question"),
                "right": bool(scores[repeat]) if repeat < len(scores) else None,
            }


def lm_eval(path: Path) -> Iterator[Row]:
    """lm-eval's --log_samples: `doc_id`, `target`, `arguments` with the prompt, and `resps`.

    The file has one line per filter for each document; only the first filter's are taken.
    """
    first_filter = None
    for number, row in numbered_lines(path):
        _need(row, path, "doc_id", "target", "resps")
        first_filter = row.get("filter") if first_filter is None else first_filter
        if row.get("filter") != first_filter:
            continue
        arguments = row.get("arguments")
        if isinstance(arguments, dict):  # {"gen_args_0": {"arg_0": prompt, "arg_1": settings}}
            first: dict[str, Any] = next(iter(arguments.values()), {})
            prompt = first.get("arg_0")
        else:
            prompt = arguments[0][0] if arguments else None
        nested = isinstance(row["resps"], list) and row["resps"] and isinstance(row["resps"][0], list)
        responses = _texts(row["resps"][0] if nested else row["resps"], "resps", f"{path}, line {number}")
        asked = next((row["doc"][name] for name in ("question", "problem") if name in row.get("doc", {})), prompt)
        right = row.get("exact_match") if len(responses) == 1 else None  # of several it is a mean, or the first's
        for repeat, completion in enumerate(responses):
            yield {
                "problem_id": str(row["doc_id"]),
                "repeat": repeat,
                "completion": completion,
                "gold": str(row["target"]),
                "prompt": prompt if isinstance(prompt, str) else None,
                "question": asked if isinstance(asked, str) else None,
                "right": None if right is None else bool(right),
            }


def _value(value: Any) -> Any:
    """A cell that lighteval may have written as text, as it does where a column mixes types."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    try:
        return ast.literal_eval(value)  # literals only: it runs nothing
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def _listed(value: Any) -> list[Any]:
    value = _value(value)
    return value if isinstance(value, list) else [value]


def _lighteval_row(row: Row, path: Path) -> tuple[Row, list[Any], list[Any]]:
    """What all completions of a row share, the completions, and their tokens."""
    if "model_response" in row:
        _need(row, path, "doc")
        doc, response = _value(row["doc"]), _value(row["model_response"])
        choices = doc.get("choices") or [""]
        golds = [str(choices[index]) for index in _listed(doc.get("gold_index") or 0)]
        shared = {"problem_id": doc.get("id"), "prompt": response.get("input") or doc.get("query")}
        shared["question"] = doc.get("original_query") or doc.get("query")
        completions, tokens = response.get("text") or [], response.get("output_tokens") or []
    else:
        _need(row, path, "gold", "predictions")
        golds = [str(gold) for gold in _listed(row["gold"])]
        shared = {"problem_id": row.get("example_id"), "prompt": row.get("full_prompt")}
        shared["question"] = row.get("example") or row.get("full_prompt")
        completions, tokens = _listed(row["predictions"]), _listed(row.get("cont_tokens") or [])
    prompt = shared["prompt"]
    shared["prompt"] = prompt if isinstance(prompt, str) else None
    return {**shared, "gold": golds[0]}, completions, tokens


def lighteval(path: Path) -> Iterator[Row]:
    """lighteval's details (https://huggingface.co/docs/lighteval/saving-and-reading-results).

    Columns `doc`, `model_response`, `metric`; in older releases `full_prompt`, `gold`, `predictions`, `cont_tokens`.
    Where there are several golds the first is taken.
    """
    try:
        rows = pq.read_table(path).to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path} should be a Parquet table of lighteval details but cannot be read ({error})") from None
    for index, row in enumerate(rows):
        shared, completions, tokens = _lighteval_row(row, path)
        named = shared["problem_id"] not in (None, "")
        for repeat, completion in enumerate(_texts(completions, "the row's text", f"{path}, row {index + 1}")):
            yield {
                **shared,
                "problem_id": str(shared["problem_id"] if named else index),
                "repeat": repeat,
                "completion": completion,
                "completion_tokens": len(tokens[repeat]) if repeat < len(tokens) and tokens[repeat] else None,
            }


def jsonl(path: Path, mapping: Mapping[str, str]) -> Iterator[Row]:
    """Plain JSONL: `mapping` says which field is which column; `a.b` is field b of object a.

    A completion that is a list gives a repeat per element; problem_id, where not mapped, is the row's number from 0.
    """
    for index, (number, row) in enumerate(numbered_lines(path)):
        found: Row = {}
        for column, field in mapping.items():
            value: Any = row
            for part in field.split("."):
                if not isinstance(value, dict) or part not in value:
                    raise UserError(f"{path} has no field {field} in line {number}; mend --map {column}={field}")
                value = value[part]
            found[column] = value
        found["problem_id"] = str(found.get("problem_id", index))
        found["gold"] = str(found["gold"])
        completions = found["completion"] if isinstance(found["completion"], list) else [found["completion"]]
        for repeat, completion in enumerate(_texts(completions, mapping["completion"], f"{path}, line {number}")):
            yield {"repeat": repeat, **found, "completion": completion}


FORMATS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "qwen-math": qwen_math,
    "lm-eval": lm_eval,
    "lighteval": lighteval,
}
