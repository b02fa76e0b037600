"""Addresses of object stores, and the requests to one bucket through obstore.

Credentials come from where each store's own tools look for them (docs/stores.md), never from an address. A bucket is
only read.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import blake2b
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tracetui.errors import UsageError
from tracetui.redact import Redactor
from tracetui.sources.base import LinkLost, Stat
from tracetui.text import Clean, one_line

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

SCHEMES: Final = ("s3", "gs", "az")
_URL: Final = re.compile(rf"({'|'.join(SCHEMES)})://([^/]*)(.*)\Z", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_STATUS: Final = re.compile(r"status code: (\d{3})")
_MESSAGE: Final = re.compile(r"<Message>([^<]*)</Message>")
_ENDPOINTS: Final = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
"""Variables with the URL of another server than the store's own, by scheme."""
_REASON_CELLS: Final = 200
_SECOND: Final = 1_000_000_000
_CONNECT_SECONDS: Final = 5
_REQUEST_SECONDS: Final = 30
_RETRY_SECONDS: Final = 15
_RETRIES: Final = 50
"""More than fit into `_RETRY_SECONDS`."""
_BACKOFF_SECONDS: Final = (0.2, 3.0)
"""Before the first further attempt, and at most before a later one."""
PAGE: Final = 1000
"""Objects of a page of a listing."""


class Bucket(msgspec.Struct, frozen=True):
    """A bucket (Azure: a container). Raises `UsageError` for an invalid name."""

    scheme: str
    name: str

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise UsageError(f"{self.name!r} is not a valid bucket name; write {self.scheme}://bucket/prefix")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.name}"

    def key(self, path: str) -> str:
        """Return the key of an object or prefix, without slashes at its ends; empty for the bucket."""
        return path[len(str(self)) :].strip("/")

    def path(self, key: str) -> str:
        """Return the path of a key, as the user would write it."""
        return f"{self}/{key}" if key else str(self)


class Object(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An object in a listing."""

    key: str
    stat: Stat


def parse_bucket(word: str) -> Bucket | None:
    """Return the bucket of ``s3://bucket/prefix`` (also ``gs``, ``az``); None for any other word.

    Raises `UsageError` for an invalid name.
    """
    match = _URL.match(word)
    return Bucket(match[1], match[2]) if match is not None else None


def join(folder: str, name: str) -> str:
    """Append a name to a path in a bucket."""
    return f"{folder.rstrip('/')}/{name}"


def parent(path: str) -> str:
    """Return the prefix that a path is in; of a bucket, itself."""
    bucket = parse_bucket(path)
    assert bucket is not None
    return bucket.path(bucket.key(path).rpartition("/")[0])


class BucketClient:
    """Requests to one bucket. Thread-safe; every method raises `OSError`, and `LinkLost` if the store is unreachable.

    A request that gets no answer is tried again for some 15 seconds, and then fails. A hostile answer may take any
    memory and time, or end the process: see `tracetui.sources.bucket_process`.
    """

    def __init__(self, bucket: Bucket, *, retries: int = _RETRIES) -> None:
        """Raises `UsageError` if the environment configures the store wrongly. obstore must be installed."""
        self.bucket = bucket
        self._store = _store(bucket, retries)

    def head(self, key: str) -> Stat:
        """Return the stat of an object. Raises `FileNotFoundError` if there is none."""
        import obstore

        with self._errors(key):
            return stat_of(obstore.head(self._store, key))

    def get(self, key: str, start: int, end: int) -> tuple[bytes, Stat]:
        """Return the bytes of a non-empty range, and the stat of the version that they are from."""
        import obstore

        with self._errors(key):
            answer = obstore.get(self._store, key, options={"range": (start, end)})
            return answer.bytes().to_bytes(), stat_of(answer.meta)

    def pages(self, prefix: str) -> Iterator[Sequence[Object]]:
        """Yield all objects below a prefix, ordered by key, some 1,000 at a time.

        Raises `ValueError` for a key that no path can express (``a//b``, ``./a``).
        """
        import obstore

        with self._errors(prefix):
            for page in obstore.list(self._store, prefix or None, chunk_size=PAGE):
                yield [Object(meta["path"], stat_of(meta)) for meta in page]

    def folder(self, prefix: str) -> tuple[Sequence[Object], Sequence[str]]:
        """Return the objects directly below a prefix, and the prefixes of deeper ones. Raises `ValueError` as above."""
        import obstore

        with self._errors(prefix):
            listing = obstore.list_with_delimiter(self._store, prefix or None)
            objects = [Object(meta["path"], stat_of(meta)) for meta in listing["objects"]]
            return objects, listing["common_prefixes"]

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        """Turn errors of obstore into `OSError`, without its text, which is long and names requests."""
        from obstore import exceptions

        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "no such object", self.bucket.path(key)) from None
        except exceptions.InvalidPathError as error:
            raise ValueError("a key that isn't a path") from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError):
            raise self._denied() from None
        except exceptions.BaseError as error:
            raise self._explain(str(error)) from None

    def _explain(self, text: str) -> OSError:
        status, message = _STATUS.search(text), _MESSAGE.search(text)
        last = text.partition("\n")[0].rpartition(" - ")[2]  # what precedes it is the request
        answer = one_line(Redactor().text(message[1] if message else last), _REASON_CELLS)
        if status is None:
            if "credential" in text.lower() or "metadata" in text.lower():
                return LinkLost(f"no credentials for {self.bucket}; {_credentials_hint()}")
            return LinkLost(f"cannot reach {self.bucket}: {answer}")
        code = int(status[1])
        if code in (401, 403):
            return self._denied()
        if code == 404:
            return FileNotFoundError(errno.ENOENT, f"no such object or bucket in {self.bucket}")
        if code == 416:
            return OSError("it shrank while it was read")
        answer = answer if message else Clean(f"HTTP status {code}")
        return (LinkLost if code >= 500 or code == 429 else OSError)(f"cannot read {self.bucket}: {answer}")

    def _denied(self) -> PermissionError:
        return PermissionError(errno.EACCES, f"access to {self.bucket} denied; {_credentials_hint()}")


def stat_of(meta: ObjectMeta) -> Stat:
    """Return the stat of an object.

    Modification times have whole seconds, so the nanoseconds of `ctime_ns` are a hash of the entity tag: another
    version has another stat even within a second.
    """
    modified: datetime = meta["last_modified"]
    mtime = int(modified.timestamp()) * _SECOND
    tag = (meta["e_tag"] or meta["version"] or "").encode()
    digest = int.from_bytes(blake2b(tag, digest_size=8).digest(), "big") % _SECOND
    return Stat(0, 0, meta["size"], mtime, mtime + digest)


def require_package(bucket: Bucket) -> None:
    """Raise `UsageError` if obstore is not installed."""
    if find_spec("obstore") is None or find_spec("obstore.store") is None:
        raise UsageError(f"reading {bucket} needs a package: pip install 'tracetui[cloud]'")


def _store(bucket: Bucket, retries: int) -> ObjectStore:
    from obstore.store import from_url

    options: Any = {
        "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
        "timeout": timedelta(seconds=_REQUEST_SECONDS),
        "allow_http": _endpoint(bucket.scheme).startswith("http://"),
    }
    first, longest = (timedelta(seconds=seconds) for seconds in _BACKOFF_SECONDS)
    retry: Any = {
        "max_retries": retries,
        "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
        "backoff": {"init_backoff": first, "max_backoff": longest, "base": 2},
    }
    try:
        return from_url(str(bucket), client_options=options, retry_config=retry, **_profile(bucket))
    except Exception as error:  # obstore has no common type for a wrong setting
        reason = one_line(Redactor().text(str(error).partition("\n")[0]), _REASON_CELLS)
        raise UsageError(f"cannot open {bucket}: {reason}") from None


def _endpoint(scheme: str) -> str:
    """Return the endpoint that the user has configured, empty for the store's own."""
    return next(filter(None, map(os.environ.get, _ENDPOINTS[scheme])), "") or ""


def _profile(bucket: Bucket) -> dict[str, Any]:
    """Return a provider for the profiles of the AWS tools, which obstore does not read, if boto3 is installed."""
    variables = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE")
    if bucket.scheme != "s3" or any(map(os.environ.get, variables)) or not _has_profile():
        return {}
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider

        return {"credential_provider": Boto3CredentialProvider()}
    except ImportError:
        return {}


def _has_profile() -> bool:
    home = os.path.expanduser("~")
    named = (os.environ.get("AWS_SHARED_CREDENTIALS_FILE"), os.path.join(home, ".aws", "credentials"))
    return bool(os.environ.get("AWS_PROFILE")) or any(path and os.path.exists(path) for path in named)


def _credentials_hint() -> str:
    """Return the next step after a refusal."""
    if _has_profile() and not os.environ.get("AWS_ACCESS_KEY_ID"):
        return "profiles of the AWS tools need boto3 (pip install boto3)"
    return "check the credentials in the environment (docs/stores.md)"
