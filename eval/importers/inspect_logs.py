"""Logs of inspect_ai, as JSON or as `.eval`, which is a zip archive with a JSON file per sample and a header.

inspect_ai compresses the archive with Zstandard, which Python 3.11 does not read in archives: pyarrow does.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from eval.importers.harness_verdicts import verdicts
from system import unpack
from system.errors import UserError

ZSTANDARD, DEFLATED = 93, zipfile.ZIP_DEFLATED
LOCAL_HEADER = 30  # bytes before a member's name
ENDS = {"stop": "stop", "max_tokens": "length", "model_length": "length"}
DAMAGE = (
    ValueError, TypeError, KeyError, AttributeError, zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError,
    RecursionError,
)  # fmt: skip
MOST_LOG = 1 << 30  # bytes of all samples, or unpack.RATIO times the log's size
LAST_EPOCH = LAST_TOKENS = 2**31 - 1  # what our tables hold
Row = dict[str, Any]


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    """The JSON of one file of an archive."""
    if info.compress_type != ZSTANDARD:
        with archive.open(info) as member:
            return json.loads(_read(member, info))
    assert archive.fp is not None
    archive.fp.seek(info.header_offset)
    name, extra = struct.unpack("<HH", archive.fp.read(LOCAL_HEADER)[26:])
    archive.fp.seek(info.header_offset + LOCAL_HEADER + name + extra)
    packed = io.BytesIO(archive.fp.read(info.compress_size))
    data = _read(pa.input_stream(packed, compression="zstd"), info)
    if zlib.crc32(data) != info.CRC:
        raise ValueError(f"the checksum of {info.filename} is that of another text")
    return json.loads(data)


def _read(member: Any, info: zipfile.ZipInfo) -> bytes:
    """A file of an archive; ValueError where it is longer than the archive says, or than text unpacks to."""
    data = b"".join(unpack.parts(member, info.compress_size))
    if len(data) > info.file_size:
        raise ValueError(f"{info.filename} has more bytes than its archive says")
    return data


def _samples(path: Path) -> Iterator[Row]:
    if not zipfile.is_zipfile(path):
        yield from json.loads(path.read_text(encoding="utf-8"))["samples"]
        return
    with zipfile.ZipFile(path) as archive:
        members = [info for info in archive.infolist() if re.fullmatch(r"samples/.+\.json", info.filename)]
        # What the archive says of sizes is compared by its reader while each is read
        if (size := sum(info.file_size for info in members)) > max(MOST_LOG, unpack.RATIO * path.stat().st_size):
            raise ValueError(f"its samples unpack to {size:,} bytes from {path.stat().st_size:,}")
        for info in members:
            yield _member(archive, info)


def _text(content: Any) -> str:
    """A message's text: a string, or parts of which those of text count."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part.get("type") == "text")


def _completion(content: Any) -> str:
    """What the model wrote: text, and before it the thinking that the provider returned as a part of its own."""
    if isinstance(content, str):
        return content
    thought = "".join(f"<think>{part['reasoning']}</think>" for part in content if part.get("type") == "reasoning")
    return thought + _text(content)


def read(path: Path) -> Iterator[Row]:
    """A row for each choice of each sample; several epochs are several repeats.

    Args:
        path: a log that inspect_ai wrote to its end.

    Raises:
        UserError: it is damaged, a sample is there twice, or it ended with an error or has no completion.
    """
    if not path.is_file():
        raise UserError(
            f"{path} should be a log of inspect_ai, but there is no such file", code="missing-file", path=str(path)
        )
    known = set[tuple[str, int]]()
    try:
        for sample in _samples(path):
            name = str(sample["id"])
            if sample.get("error") or not sample["output"]["choices"]:
                raise UserError(
                    f"{path}: sample {name} ended with an error in inspect_ai or has no completion; finish the log "
                    "with `inspect eval-retry`",
                    code="unfinished-sample",
                    sample=name,
                )
            if sample["id"] is None or not 1 <= sample["epoch"] <= LAST_EPOCH:
                raise ValueError(f"sample {name} has the epoch {sample['epoch']}")
            if (key := (name, sample["epoch"])) in known:
                raise UserError(
                    f"{path}: sample {name} is there twice for epoch {key[1]}, so it is not known which one counts: "
                    "delete one",
                    code="duplicate-samples",
                    sample=name,
                )
            known.add(key)
            yield from _rows(sample)
    except DAMAGE as error:
        raise UserError(
            f"{path} is no log of inspect_ai, or is damaged ({error}); copy it again",
            code="damaged-log",
            path=str(path),
        ) from None


def _rows(sample: Row) -> Iterator[Row]:
    question = sample["input"]
    if not isinstance(question, str):
        question = "\n".join(_text(message["content"]) for message in question if message["role"] == "user")
    target, output = sample["target"], sample["output"]
    scores = verdicts({name: score["value"] for name, score in (sample.get("scores") or {}).items()})
    usage = output.get("usage") or {}
    for tokens in (usage.get("input_tokens"), usage.get("output_tokens")):
        if tokens is not None and not 0 <= tokens <= LAST_TOKENS:
            raise ValueError(f"sample {sample['id']} has {tokens} tokens")
    one = len(output["choices"]) == 1  # usage and scores are of all choices together
    verdicts_of_one = scores if one else {}
    for choice in output["choices"]:
        yield {
            "problem_id": str(sample["id"]),
            "repeat": sample["epoch"] - 1,
            "completion": _completion(choice["message"]["content"]),
            "gold": target if isinstance(target, str) else "; ".join(target),
            "question": question,
            "finish_reason": ENDS.get(choice.get("stop_reason")),
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens") if one else None,
            "verdicts": verdicts_of_one,
            "right": next(iter(verdicts_of_one.values()), None),
        }
