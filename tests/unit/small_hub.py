"""A server that answers the Hugging Face hub's addresses for one data set of one file, at one commit.

The clients (`datasets`, `huggingface_hub`) are the real ones; only the far end of the wire is ours.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlparse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serve(repo: str, file: str, content: bytes, gated: bool = False) -> Iterator[tuple[str, list[str]]]:
    """The address to put in HF_ENDPOINT, and the list of requests as they come; `gated`: all of them are refused."""
    etag = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    entry = {"type": "file", "path": file, "size": len(content), "oid": etag}
    info = {
        "id": repo, "sha": COMMIT, "private": False, "disabled": False, "gated": False, "tags": [],
        "downloads": 0, "likes": 0, "siblings": [{"rfilename": file}],
    }  # fmt: skip
    requests: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repo-Commit", COMMIT)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def handle_request(self) -> None:
            path = unquote(urlparse(self.path).path)
            length = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length).decode()
            requests.append(f"{self.command} {path}")
            known = (COMMIT, "main")
            if gated and f"/{repo}" in path:
                return self.answer(
                    401, X_Error_Code="GatedRepo", X_Error_Message=f"Access to dataset {repo} is restricted."
                )
            if path in (f"/api/datasets/{repo}", *(f"/api/datasets/{repo}/revision/{r}" for r in known)):
                return self.answer(200, json.dumps(info).encode(), Content_Type="application/json")
            if any(path.startswith(f"/api/datasets/{repo}/tree/{r}") for r in known):
                return self.answer(200, json.dumps([entry]).encode(), Content_Type="application/json")
            if any(path == f"/api/datasets/{repo}/paths-info/{r}" for r in known):
                entries = [entry] if file in sent or file in unquote(sent) else []
                return self.answer(200, json.dumps(entries).encode(), Content_Type="application/json")
            if any(path == f"/datasets/{repo}/resolve/{r}/{file}" for r in known):
                return self.answer(200, content, ETag=f'"{etag}"', Accept_Ranges="none")
            code = "EntryNotFound" if path.startswith(f"/datasets/{repo}/") else "RepoNotFound"
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
