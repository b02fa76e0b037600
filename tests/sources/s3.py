"""A real S3 server (moto) on loopback, and writing to it through obstore."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import obstore
from obstore.store import S3Store

KEYS = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "a-secret-key-of-tests", "AWS_REGION": "us-east-1"}


SERVER = """
import sys
from moto.s3.models import s3_backends
from moto.server import main

account = s3_backends["123456789012"]["aws"]
account.create_bucket("many", "us-east-1")
for i in range(int(sys.argv[1])):
    account.put_object("many", f"runs/{i % 20:03}/{i:06}.json", b"{}")
main(["-H", "127.0.0.1", "-p", "0"])
"""


def missing() -> str:
    """Why there can be no server; empty if there can."""
    return "" if find_spec("moto") else "moto is not installed; `python3 dev.py stores` installs it"


class S3:
    """A server process. `environment` leads clients to it."""

    def __init__(self, keys: int = 0) -> None:
        """With so many objects of 2 bytes in the bucket ``many``: ``runs/000/000000.json`` …"""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-c", SERVER, str(keys)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            match = re.search(rb"Running on (http://127\.0\.0\.1:\d+)", line)
            if match:
                self.url = match[1].decode()
                break
        else:
            raise AssertionError("moto does not start")
        # its log must not fill the pipe
        self._drain = subprocess.Popen(["cat"], stdin=self._process.stderr, stdout=subprocess.DEVNULL)
        self.environment = {**KEYS, "AWS_ENDPOINT_URL": self.url}

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._drain.wait()

    def bucket(self, name: str) -> S3Store:
        """Forget all buckets and create one; return a store to write to it."""
        for method, path in (("POST", "moto-api/reset"), ("PUT", name)):
            urllib.request.urlopen(urllib.request.Request(f"{self.url}/{path}", method=method))
        return S3Store(
            name,
            endpoint=self.url,
            region=KEYS["AWS_REGION"],
            access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            client_options={"allow_http": True},
        )


def upload(store: S3Store, folder: Path, prefix: str) -> None:
    """Put every file below a folder into a bucket."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            obstore.put(store, f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())
