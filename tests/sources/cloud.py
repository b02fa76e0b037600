"""A server that answers as object stores do: listings page by page, heads and ranges. It keeps everything in memory.

It speaks the parts of the interfaces of S3, Google Cloud Storage (XML) and Azure Blob Storage that reading takes, for
what moto can't do: 100,000 keys, and the two other stores.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape
from zlib import crc32

PAGE = 1000
DATE, CHANGED = "Mon, 02 Nov 2026 10:00:00 GMT", 1_793_613_600


def tag(data: bytes) -> str:
    """The entity tag of a version of an object."""
    return f"{crc32(data):08x}"


class Cloud:
    """A running server with one bucket. `requests` are those that it has answered: method and path with query."""

    def __init__(self, scheme: str, bucket: str = "traces", objects: dict[str, bytes] | None = None) -> None:
        self.scheme, self.bucket, self.objects = scheme, bucket, objects or {}
        self.keys = sorted(self.objects)
        self.requests: list[str] = []
        self.denies = self.cuts = False
        """Every request is refused; objects end in the middle."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"cloud": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        self.objects[key] = data
        self.keys = sorted(self.objects)

    def environment(self, folder: Path) -> dict[str, str]:
        """Variables that lead clients to it; `folder` gets files of credentials."""
        if self.scheme == "s3":
            keys = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "a-secret-key-of-tests"}
            return {**keys, "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": self.url}
        if self.scheme == "az":
            key = "YS1zZWNyZXQta2V5LW9mLXRlc3Rz"
            return {
                "AZURE_STORAGE_ACCOUNT_NAME": "reader",
                "AZURE_STORAGE_ACCOUNT_KEY": key,
                "AZURE_STORAGE_ENDPOINT": self.url,
            }
        account = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
        path = folder / "account.json"
        path.write_text(json.dumps(account))
        return {"GOOGLE_SERVICE_ACCOUNT": str(path), "GOOGLE_BASE_URL": self.url}

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def page(self, prefix: str, delimiter: str, after: str) -> tuple[list[str], list[str], str]:
        """Keys and common prefixes after a key, and after which key the next page begins; empty at the end."""
        keys, above = list[str](), dict[str, None]()
        at = bisect_left(self.keys, after + "\0" if after else prefix)
        for key in self.keys[at:]:
            if not key.startswith(prefix):
                break
            if len(keys) == PAGE:
                return keys, [*above], keys[-1]
            inner = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if inner[1]:
                above[prefix + inner[0] + delimiter] = None
            else:
                keys.append(key)
        return keys, [*above], ""


class _Handler(BaseHTTPRequestHandler):
    cloud: Cloud
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def log_message(self, *_: Any) -> None:
        """Stay quiet."""

    def do_GET(self) -> None:
        cloud, url = self.cloud, urlsplit(self.path)
        cloud.requests.append(f"{self.command} {self.path}")
        bucket, _, key = unquote(url.path).strip("/").partition("/")
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if cloud.denies:
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        elif bucket != cloud.bucket:
            self._answer(404, b"<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>")
        elif not key:
            self._answer(200, (self._blobs if cloud.scheme == "az" else self._contents)(asked))
        elif key not in cloud.objects:
            self._answer(404, b"")
        else:
            self._object(cloud.objects[key])

    do_HEAD = do_GET

    def _object(self, data: bytes) -> None:
        wanted, size = self.headers.get("Range") or self.headers.get("x-ms-range"), len(data)
        fields = {"ETag": f'"{tag(data)}"', "Last-Modified": DATE, "x-ms-blob-type": "BlockBlob"}
        if wanted is None:
            self._answer(200, data, **fields)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        part = data[int(first) : int(last) + 1 if last else size]
        self._answer(206, part, **fields, **{"Content-Range": f"bytes {first}-{int(first) + len(part) - 1}/{size}"})

    def _contents(self, asked: dict[str, str]) -> bytes:
        keys, above, after = self.cloud.page(
            asked.get("prefix", ""), asked.get("delimiter", ""), asked.get("continuation-token", "")
        )
        objects = self.cloud.objects
        listed = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-02T10:00:00.000Z</LastModified>"
            f'<ETag>"{tag(objects[key])}"</ETag><Size>{len(objects[key])}</Size></Contents>'
            for key in keys
        )
        prefixes = "".join(f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>" for prefix in above)
        more = f"<NextContinuationToken>{escape(after)}</NextContinuationToken>" if after else ""
        return f"<ListBucketResult>{listed}{prefixes}{more}</ListBucketResult>".encode()

    def _blobs(self, asked: dict[str, str]) -> bytes:
        keys, above, after = self.cloud.page(
            asked.get("prefix", ""), asked.get("delimiter", ""), asked.get("marker", "")
        )
        objects = self.cloud.objects
        listed = "".join(
            f"<Blob><Name>{escape(key)}</Name><Properties><Last-Modified>{DATE}</Last-Modified>"
            f'<Content-Length>{len(objects[key])}</Content-Length><Etag>"{tag(objects[key])}"</Etag>'
            "<Content-Type>text/plain</Content-Type><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for key in keys
        )
        prefixes = "".join(f"<BlobPrefix><Name>{escape(prefix)}</Name></BlobPrefix>" for prefix in above)
        more = f"<NextMarker>{escape(after)}</NextMarker>" if after else "<NextMarker />"
        return f"<EnumerationResults><Blobs>{listed}{prefixes}</Blobs>{more}</EnumerationResults>".encode()

    def _answer(self, code: int, data: bytes, **fields: str) -> None:
        self.send_response(code)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            cut = self.cloud.cuts and code in (200, 206) and not data.startswith(b"<")
            self.wfile.write(data[: len(data) // 2] if cut else data)
            self.close_connection = cut
