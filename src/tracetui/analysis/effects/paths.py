"""Paths in tool calls: the place a call works in, and which paths are outside of it, temporary or secret."""

from __future__ import annotations

import re
from functools import lru_cache
from posixpath import join, normpath
from typing import Final

import msgspec

from tracetui.analysis.effects.vocabulary import CHANGES, Certainty, Effect, Flag, Kind

_HOME: Final = re.compile(r"/(?:home|Users)/[^/]+|/root(?=/|$)")
_SINKS: Final = re.compile(r"/dev/(?:null|stdout|stderr|stdin|tty|fd/\d+|zero|u?random)$")
_TEMPORARY: Final = re.compile(
    r"(?:/private)?/(?:tmp|var/tmp|var/folders)(?:/|$)|/dev/shm(?:/|$)|\$\{?(?:TMPDIR|TEMP|TMP)\}?(?:/|$)"
    r"|[A-Za-z]:/(?:Users/[^/]+/AppData/Local/Temp|Temp|tmp)(?:/|$)"
)
_OWN: Final = re.compile(
    r"(?:~|/home/[^/]+|/Users/[^/]+|/root)/\.(?:claude|codex|copilot|gemini|qwen|pi|opencode|cursor)(?:/|$)"
)
_SECRET: Final = re.compile(
    r"""(?:^|/)(?:
        \*?\.env(?:rc|\.(?!(?:ex|s)ample|template|dist|schema|defaults?(?:$|\.)|test(?:$|\.)|d\.ts)[\w.*-]+|\*)?
        | id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk|_[\w-]+)? | \.netrc | _netrc | \.npmrc | \.pypirc | \.pgpass | \.my\.cnf
        | \.git-credentials | \.htpasswd | \.vault-token | \.dockercfg | auth\.json
        | (?:application_default_)?credentials(?:\.(?:json|ya?ml|toml|csv|ini|db|xml))?
        | [\w-]*service[-_]?account[\w-]*\.json
        | \.?secrets?(?:\.[\w-]+)?\.(?:json|ya?ml|toml|env|ini|tfvars) | secrets?
        | [\w.*-]*\.(?:pem|p12|pfx|key|keystore|jks|kdbx|ppk) | g?shadow-? | master\.key
    )$
    | (?:^|/)\.(?:ssh|gnupg)/(?!(?:.*/)?(?:known_hosts[\w.]*|config|authorized_keys|[^/]*\.pub)$)[^/]
    | (?:^|/)\.aws/(?:credentials|sso/cache/.|cli/cache/.)
    | (?:^|/)\.(?:kube|docker)/config(?:\.json)?$
    | (?:^|/)\.config/(?:gh/hosts\.yml|gcloud/(?:credentials\.db|access_tokens\.db|legacy_credentials/.))
    | ^/(?:run|var/run)/secrets/. | ^/proc/(?:self|\d+)/environ$""",
    re.VERBOSE | re.IGNORECASE,
)
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a call works. Empty: not recorded."""

    root: str = ""
    """The first working directory of the run."""
    directory: str = ""
    """The working directory of the call."""
    is_known: bool = True
    """False after a ``cd`` to a directory that the command doesn't name."""

    @property
    def home(self) -> str:
        """The user's folder, from the root."""
        match = _HOME.match(self.root)
        return match[0] if match else ""

    def resolve(self, path: str) -> str:
        """Normalize a path: absolute where the trace has a directory, with the home folder if it is known."""
        path = path.removeprefix("file://")
        if _DRIVE.match(path) or ("\\" in path and "/" not in path):
            path = path.replace("\\", "/")
        for variable in ("${PWD}", "$PWD"):
            if path == variable or path.startswith(f"{variable}/"):
                path = f".{path[len(variable) :]}"
        for variable in ("~", "${HOME}", "$HOME"):
            if path == variable or path.startswith(f"{variable}/"):
                return normpath(f"{self.home or '~'}{path[len(variable) :]}")
        if path.startswith(("$", "`", "~", "<(", ">(")) or _DRIVE.match(path):
            return path
        path = join(self.directory or self.root, path) if self.is_known else path
        return normpath(path).removeprefix("/") if path.startswith("//") else normpath(path)

    def is_outside(self, path: str) -> bool:
        """Whether a resolved path is certainly not in the root."""
        if path.startswith(("/", "~")) or _DRIVE.match(path):
            return bool(self.root) and path != self.root and not path.startswith(self.root.rstrip("/") + "/")
        if path.startswith(("$", "`")):
            return bool(_TEMPORARY.match(path))
        return path == ".." or path.startswith("../")

    def enter(self, path: str) -> Place:
        """The place after ``cd path``."""
        target = self.resolve(path)
        is_known = (
            not target.startswith(("$", "`")) and path != "-" and (self.is_known or target.startswith(("/", "~")))
        )
        return Place(self.root, target if is_known else self.directory, is_known)


def is_sink(path: str) -> bool:
    """Whether what is written there is gone."""
    return path in ("-", "") or bool(_SINKS.match(path))


def is_temporary(path: str) -> bool:
    """Whether a resolved path is in a temporary folder, or the agent's own."""
    return bool(_TEMPORARY.match(path) or _OWN.match(path))


def is_secret(path: str) -> bool:
    """Whether a file of that name usually holds credentials. Templates (``.env.example``) and public keys don't."""
    return bool(_SECRET.search(path))


@lru_cache(maxsize=1_024)
def file_effect(kind: Kind, path: str, place: Place, *flags: Flag, certainty: Certainty) -> Effect | None:
    """Return the effect on a file, with the flags that follow from its path; None for ``/dev/null`` and the like."""
    target = place.resolve(path)
    if is_sink(path) or is_sink(target):
        return None
    marks = set(flags)
    if kind in CHANGES and (place.is_known or target.startswith(("/", "~", "$"))) and place.is_outside(target):
        marks.add(Flag.OUTSIDE)
    if is_temporary(target):
        marks.add(Flag.TEMPORARY)
    if kind is Kind.READ and is_secret(target):
        marks.add(Flag.SECRET)
    return Effect(kind, target, frozenset(marks), certainty=certainty)
