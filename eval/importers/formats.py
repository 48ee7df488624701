"""Readers of other harnesses' files: each yields one dictionary per completion, with the columns that it knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.errors import UserError

Row = dict[str, Any]


def json_lines(path: Path) -> Iterator[Row]:
    """Rows of a JSONL file; an error names the file and the line."""
    number = 0
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                number += 1
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise ValueError(f"a {type(row).__name__} and no object")
                    yield row
    except FileNotFoundError:
        raise UserError(f"{path} should be a JSONL file but is not there; give the path of the generations") from None
    except ValueError as error:
        raise UserError(f"{path} should be JSONL, one object per line, but line {number} is not: {error}") from None


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
    for row in json_lines(path):
        _need(row, path, "idx", "gt", "code")
        for repeat, completion in enumerate(row["code"]):
            gold = row["gt"] or row.get("answer") or ""
            yield {"problem_id": str(row["idx"]), "repeat": repeat, "completion": completion, "gold": str(gold)}


def lm_eval(path: Path) -> Iterator[Row]:
    """lm-eval's --log_samples: `doc_id`, `target`, `arguments` with the prompt, and `resps`.

    The file has one line per filter for each document; only the first filter's are taken.
    """
    first_filter = None
    for row in json_lines(path):
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
        responses = row["resps"][0] if row["resps"] and isinstance(row["resps"][0], list) else row["resps"]
        for repeat, completion in enumerate(responses):
            yield {
                "problem_id": str(row["doc_id"]),
                "repeat": repeat,
                "completion": completion,
                "gold": str(row["target"]),
                "prompt": prompt if isinstance(prompt, str) else None,
            }


def lighteval(path: Path) -> Iterator[Row]:
    """lighteval's details: in the older layout `full_prompt`, `gold`, `predictions`; in the newer `doc`."""
    try:
        rows = pq.read_table(path).to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path} should be a Parquet table of lighteval details but cannot be read ({error})") from None
    for index, row in enumerate(rows):
        if "model_response" in row:
            _need(row, path, "doc")
            doc, response = row["doc"], row["model_response"]
            choices, gold_index = doc.get("choices") or [""], doc.get("gold_index") or 0
            gold = choices[gold_index[0] if isinstance(gold_index, list) else gold_index]
            prompt, completions = doc.get("query"), response.get("text") or []
            lengths = [len(tokens) for tokens in response.get("output_tokens") or []]
            problem = doc.get("id")
        else:
            _need(row, path, "gold", "predictions")
            gold, prompt, completions = row["gold"], row.get("full_prompt"), row["predictions"]
            if isinstance(completions, str):
                completions = json.loads(completions)
            gold = gold[0] if isinstance(gold, list) and gold else gold
            lengths, problem = [], row.get("example_id")
        for repeat, completion in enumerate(completions):
            yield {
                "problem_id": str(index if problem in (None, "") else problem),
                "repeat": repeat,
                "completion": completion,
                "gold": str(gold),
                "prompt": prompt,
                "completion_tokens": lengths[repeat] if repeat < len(lengths) else None,
            }


def jsonl(path: Path, mapping: Mapping[str, str]) -> Iterator[Row]:
    """Plain JSONL: `mapping` says which field is which column; `a.b` is field b of object a.

    A completion that is a list gives a repeat per element; without a mapping for it, the line number names the problem.
    """
    for index, row in enumerate(json_lines(path)):
        found: Row = {}
        for column, field in mapping.items():
            value: Any = row
            for part in field.split("."):
                if not isinstance(value, dict) or part not in value:
                    raise UserError(f"{path} has no field {field} in line {index + 1}; mend --map {column}={field}")
                value = value[part]
            found[column] = value
        found["problem_id"] = str(found.get("problem_id", index))
        found["gold"] = str(found["gold"])
        completions = found["completion"] if isinstance(found["completion"], list) else [found["completion"]]
        for repeat, completion in enumerate(completions):
            yield {"repeat": repeat, **found, "completion": completion}


FORMATS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "qwen-math": qwen_math,
    "lm-eval": lm_eval,
    "lighteval": lighteval,
}
