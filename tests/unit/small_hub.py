"""A server that answers the Hugging Face hub's addresses for one data set or model, at one commit.

The clients (`datasets`, `huggingface_hub`) are the real ones; only the far end of the wire is ours.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlparse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serve(
    repo: str, files: Mapping[str, bytes], *, kind: str = "datasets", gated: bool = False, cut: str | None = None
) -> Iterator[tuple[str, list[str]]]:
    """The address to put in HF_ENDPOINT, and the list of requests as they come.

    Args:
        repo: its name.
        files: their contents by name.
        kind: datasets or models.
        gated: all requests are refused.
        cut: a file of which the first request gets half, after which the connection is closed.
    """
    etags = {name: hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() for name, content in files.items()}
    entries = [
        {"type": "file", "path": name, "size": len(content), "oid": etags[name]} for name, content in files.items()
    ]
    info = {
        "id": repo, "sha": COMMIT, "private": False, "disabled": False, "gated": False, "tags": [],
        "downloads": 0, "likes": 0, "siblings": [{"rfilename": name} for name in files],
    }  # fmt: skip
    requests: list[str] = []
    folder = "/datasets" if kind == "datasets" else ""

    class Hub(BaseHTTPRequestHandler):
        def answer(self, status: int, body: bytes = b"", whole: bool = True, **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repo-Commit", COMMIT)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body if whole else body[: len(body) // 2])

        def handle_request(self) -> None:
            path = unquote(urlparse(self.path).path)
            length = int(self.headers.get("Content-Length") or 0)
            sent = unquote(self.rfile.read(length).decode())
            requests.append(f"{self.command} {path}")
            api = f"/api/{kind}/{repo}"
            if gated and f"/{repo}" in path:
                return self.answer(401, X_Error_Code="GatedRepo", X_Error_Message=f"Access to {repo} is restricted.")
            for revision in (COMMIT, "main"):
                if path in (api, f"{api}/revision/{revision}"):
                    return self.answer(200, json.dumps(info).encode(), Content_Type="application/json")
                if path.startswith(f"{api}/tree/{revision}"):
                    return self.answer(200, json.dumps(entries).encode(), Content_Type="application/json")
                if path == f"{api}/paths-info/{revision}":
                    wanted = [entry for entry in entries if str(entry["path"]) in sent]
                    return self.answer(200, json.dumps(wanted).encode(), Content_Type="application/json")
                name = path.removeprefix(f"{folder}/{repo}/resolve/{revision}/")
                if name in files:
                    whole = name != cut or self.command == "HEAD" or requests.count(f"GET {path}") > 1
                    self.close_connection = True
                    return self.answer(200, files[name], whole, ETag=f'"{etags[name]}"', Accept_Ranges="none")
            code = "EntryNotFound" if path.startswith(f"{folder}/{repo}/") else "RepoNotFound"
            return self.answer(404, X_Error_Code=code)

        do_GET = do_HEAD = do_POST = handle_request

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
