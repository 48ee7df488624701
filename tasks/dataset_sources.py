"""Read a data set's raw rows as its owners publish them: from a mirror folder, an address, or the Hugging Face hub."""

from __future__ import annotations

import csv
import errno
import gzip
import hashlib
import http.client
import io
import json
import os
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import tables
from system import unpack
from system.errors import UserError
from tasks.dataset_specs import Entry

Rows = Sequence[dict[str, Any]]
ANSWER_WITHIN = 8  # seconds for the hub's first answer, before the loaders would retry for minutes
DOWNLOAD_WITHIN = 60  # seconds without a byte while a file is downloaded


def _mirror_advice(entry: Entry) -> str:
    paths = " and ".join(file["path"] for file in entry.spec.get("files", ()))
    return f"set `data_mirror` (--data-mirror) to a folder that holds {paths or 'its files'}"


def from_files(entry: Entry, mirror: Path | None) -> tuple[Rows, dict[str, Any]]:
    """All rows of the entry's files, from a folder or downloaded from their addresses, and what they were read from.

    Raises:
        UserError: a file is missing, its address does not answer, or it holds other bytes than the registry says.
    """
    if mirror is not None and not mirror.is_dir():
        raise UserError(
            f"data_mirror should be a folder, but {mirror} is not: correct it, or leave it out",
            code="missing-folder",
            path=str(mirror),
        )
    rows: list[dict[str, Any]] = []
    facts = []
    for file in entry.spec.get("files", ()):
        source, content = _from_mirror(entry, mirror, file) if mirror is not None else _download_file(entry, file)
        _check_bytes(entry, source, content, file)
        rows += parse_rows(source, content)
        named = {"file": file["path"]} if mirror is not None else {"url": source}
        facts.append({**named, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)})
    if not facts:
        raise UserError(
            f"the mirror {mirror} has no {entry.name}: leave data_mirror out to load it from the hub",
            code="missing-from-mirror",
            dataset=entry.name,
        )
    return rows, {"kind": "address" if mirror is None else "mirror", "files": facts}


def _from_mirror(entry: Entry, mirror: Path, file: dict[str, Any]) -> tuple[str, bytes]:
    path = mirror / file["path"]
    if not path.is_file():
        hub = entry.spec.get("hub", {})
        access = ", where its owners grant access on request" if hub.get("gated") else ""
        network = f"load it from the hub ({hub['path']}{access})" if hub else "download it"
        raise UserError(
            f"the mirror does not have {entry.name}: {path} is missing; put its {entry.spec['rows']:,} rows there, or "
            f"run without data_mirror on a machine with a network, to {network}",
            code="missing-from-mirror",
            dataset=entry.name,
            path=str(path),
        )
    return str(path), path.read_bytes()


def _download_file(entry: Entry, file: dict[str, Any]) -> tuple[str, bytes]:
    url = file.get("url")
    if not url:
        raise UserError(
            f"{entry.name} has no address to be downloaded from ({entry.where}): {_mirror_advice(entry)}",
            code="no-download-address",
            dataset=entry.name,
        )
    try:
        with urllib.request.urlopen(url, timeout=DOWNLOAD_WITHIN) as answer:
            return url, answer.read()
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise UserError(
            f"cannot download {entry.name} from {url} ({reason}): {_mirror_advice(entry)}",
            code="download-failed",
            name=entry.name,
        ) from None


def _check_bytes(entry: Entry, name: str, content: bytes, file: dict[str, Any]) -> None:
    """Compare with the registry's hash: a truncated or changed file is refused before it is parsed."""
    expected = file.get("sha256")
    actual = hashlib.sha256(content).hexdigest()
    if expected is None or expected == actual:
        return
    size = file.get("bytes")
    short = f" and is {size - len(content):,} of {size:,} bytes short" if size and len(content) < size else ""
    raise UserError(
        f"{name} should have sha256 {expected} ({entry.where}) but has {actual}{short}: copy it again from its source",
        code="other-content",
        dataset=entry.name,
        sha256=actual,
    )


def parse_rows(name: str, content: bytes) -> list[dict[str, Any]]:
    """Rows of a .jsonl, .json, .csv, .parquet or .arrow file (a stream, by `datasets`); UserError if it is none.

    Text may be compressed (.jsonl.gz).
    """
    kind = name.removesuffix(".gz")
    try:
        if kind != name:
            content = b"".join(unpack.parts(gzip.GzipFile(fileobj=io.BytesIO(content)), len(content)))
        if kind.endswith(".parquet"):
            rows = tables.read_within_bounds(io.BytesIO(content), len(content), name).to_pylist()
        elif kind.endswith(".arrow"):
            rows = pa.ipc.open_stream(io.BytesIO(content)).read_all().to_pylist()
        elif kind.endswith(".jsonl"):
            rows = [json.loads(line) for line in content.decode("utf-8").split("\n") if line.strip()]
        elif kind.endswith(".csv"):
            rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
        else:
            rows = json.loads(content.decode("utf-8"))
    except (
        pa.ArrowException,
        OSError,
        ValueError,  # also of text that is no UTF-8 or no JSON, or unpacks to too much
        csv.Error,
        RecursionError,
        EOFError,
        zlib.error,
    ) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{name} cannot be read as {Path(name).suffix[1:]} ({reason}): copy it again",
            code="unreadable-rows",
            path=name,
        ) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(
            f"{name} should hold a list of rows with named columns, and holds something else",
            code="unreadable-rows",
            path=name,
        )
    return rows


def from_hub(entry: Entry) -> tuple[Rows, dict[str, Any]]:
    """The split at its pinned commit or, without one, at the branch's current head.

    If the hub does not answer, only the cache of an earlier run is used; UserError if it does not have the set.
    """
    hub = entry.spec["hub"]
    reason = None if os.environ.get("HF_HUB_OFFLINE") in ("1", "true") else why_unreachable(endpoint())
    if reason:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read by the import of `datasets` below: only the cache, no retries
    import datasets
    import huggingface_hub

    unavailable = f"cannot load {entry.name} from the hub ({hub['path']} at {endpoint()}"
    revision = hub.get("revision")
    # Whatever the hub's client raises (not found, gated, refused, a broken answer) is for the user to fix; a full disk
    # has its own message.
    try:
        if revision is None:
            revision = huggingface_hub.HfApi().dataset_info(hub["path"], timeout=ANSWER_WITHIN).sha
        rows = datasets.load_dataset(hub["path"], hub.get("name"), split=hub["split"], revision=revision)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        why = f"{reason}, and no copy is in the cache" if reason else " ".join(str(error).split())[:300]
        if hub.get("gated") and not reason:
            raise UserError(
                f"{unavailable}: {why}); its owners grant access on request: ask for it at "
                f"{endpoint()}/datasets/{hub['path']} and set HF_TOKEN, or {_mirror_advice(entry)}",
                code="access-not-granted",
                dataset=entry.name,
            ) from None
        raise UserError(
            f"{unavailable}: {why}); check the network, or {_mirror_advice(entry)}",
            code="download-failed",
            name=entry.name,
        ) from None
    facts = {"kind": "hub", "path": hub["path"], "name": hub.get("name"), "split": hub["split"], "revision": revision}
    if hub.get("revision") is None:
        facts["hint"] = f"not pinned: add `revision: {revision}` to the `hub` block of {entry.name} in {entry.where}"
    return rows, facts


def endpoint() -> str:
    """The hub's address."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def why_unreachable(address: str, within: float = ANSWER_WITHIN) -> str | None:
    """Why an address does not answer within so many seconds; None if it does.

    In a thread, because a name look-up has no time limit. Proxies from the environment are used.
    """
    reason: list[str | None] = [f"no answer within {within:g} seconds"]

    def ask() -> None:
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=within).close()
        except urllib.error.HTTPError:
            pass  # an answer, whatever it says
        except (OSError, ValueError) as error:
            reason[0] = str(getattr(error, "reason", error))
            return
        reason[0] = None

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(within)
    return reason[0]
