# ruff: noqa: E501
"""What a secret looks like: field names, placeholders, token prefixes, and other shapes of text.

`tracetui.redact_rules` looks for them. Every pattern runs in time linear in the length of the text, for any input.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

CUT_AT: Final = 119
"""Length from which a header may be truncated: then a partial secret at its end counts."""


class NameClass(IntEnum):
    """Whether the name of a field marks its value as secret."""

    OPEN = 0
    TEXT = 1
    """A text is secret; a number is a count or an id (``token: 1183``)."""
    ALL = 2
    """Text and numbers are secret (``password: 1234``)."""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A compiled pattern, cached: compiling at import would slow down the start."""
    return re.compile(pattern)


# ---- names

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALWAYS: Final = frozenset({"password", "passwd", "passphrase", "pwd", "secret", "secrets", "passwords"})
_TEXTS: Final = frozenset({"authorization", "cookie", "cookies", "credential", "credentials", "apikey", "dsn"})
_LAST: Final = frozenset({"token", "auth", "passcode"})
_PAIRS: Final = frozenset(
    {
        *((word, "key") for word in ("api", "private", "access", "secret", "signing", "encryption", "ssh", "account")),
        *((word, "key") for word in ("master", "subscription", "license", "deploy", "admin", "service", "auth")),
        *((word, "key") for word in ("shared", "storage", "rsa", "encrypt")),
        *((word, "pass") for word in ("db", "mysql", "pg", "smtp", "ftp", "redis", "user", "admin", "root", "mail")),
        *((word, "salt") for word in ("auth", "app", "in", "nonce", "secret", "secure", "key", "hash", "jwt")),
        *((word, "key") for word in ("app", "hmac", "webhook", "session", "token", "cookie", "jwt", "vault")),
        ("become", "pass"), ("key", "data"), ("mnemonic", "seed"),
        ("connection", "string"), ("connection", "strings"), ("connection", "uri"), ("connection", "url"),
    }
)  # fmt: skip
_GLUED: Final = (
    "apikey", "accesstoken", "authtoken", "refreshtoken", "sessiontoken", "idtoken", "bearertoken", "secretkey",
    "privatekey", "accesskey", "accountkey", "authkey", "connectionstring",
)  # fmt: skip
_GLUED_ALWAYS: Final = ("password", "passwd", "passphrase", "clientsecret")
_ABOUT: Final = frozenset({
    "count", "counts", "type", "types", "name", "names", "url", "uri", "endpoint", "length", "len", "expiry",
    "expires", "expired", "expiration", "at", "in", "ttl", "required", "policy", "hint", "path", "file", "id", "ids",
    "limit", "limits", "budget", "usage", "index", "rate", "per", "max", "min", "total", "size", "age", "version",
    "present", "valid", "enabled", "status", "error", "errors", "kind", "format", "field", "fields", "prompt",
    "estimate", "cost", "price", "details", "window", "used", "algorithm", "algo", "method", "methods", "mode",
    "scheme", "provider", "header", "param", "strength", "rotation", "reset", "attempts", "ref", "pattern", "regex",
    "label", "env", "var", "variable", "placeholder", "helper", "authentication", "manager", "store", "rules",
})  # fmt: skip
"""Last words of names for properties of a secret (``token_count``, ``secret_name``)."""


_IN_VOCABULARY: Final = ("Ġ", "▁", "##")
"""Prefixes of entries in a tokenizer's vocabulary, which aren't names."""


@lru_cache(4096)
def classify_name(key: str) -> NameClass:
    """Classify the name of a field. Case and separators don't matter: ``apiKey`` is ``API-KEY``."""
    words = [word.lower() for word in _WORD.findall(key[-80:])]
    if len(words) > 1 and words[-1].isdecimal() and len(words[-1]) < 4 and words[-2] != "auth":
        words.pop()  # one of several: ``token2``
    if not words or key.startswith(_IN_VOCABULARY) or (words[-1] in _ABOUT and tuple(words[-2:]) not in _PAIRS):
        return NameClass.OPEN
    pairs = _PAIRS.intersection(pairwise(words))
    if not _ALWAYS.isdisjoint(words) or words[-1].endswith(_GLUED_ALWAYS) or (pairs and words[-1] == "pass"):
        return NameClass.ALL
    if pairs or words[-1] in _LAST or not _TEXTS.isdisjoint(words):
        return NameClass.TEXT
    return NameClass.TEXT if words[-1].endswith(_GLUED) else NameClass.OPEN


# ---- placeholders and references

_STAND_INS: Final = frozenset({
    "none", "null", "nil", "true", "false", "undefined", "str", "string", "bytes", "bool", "boolean", "int",
    "integer", "number", "float", "object", "array", "any", "text", "varchar", "optional", "required", "hidden",
    "masked", "secretstr", "invalid", "incorrect", "wrong", "missing", "expired", "unknown", "empty", "unset",
    "default", "changeme", "change-me", "change_me", "example", "placeholder", "dummy", "todo", "the", "yes", "no",
    "off", "redacted", "pass",
})  # fmt: skip
"""Placeholders for a secret, and words about one."""
_VARIABLE: Final = (
    r"_{0,2}(?:(?:[A-Za-z]+[0-9]{0,2}|[A-Za-z][0-9]{1,2}[A-Za-z])_{1,2})*(?:[A-Za-z]+[0-9]{0,2}(?:_[0-9]{1,2})?)"
)
"""A variable name: words of letters that may end in digits. ``ecur3P`` and ``2b`` don't match."""
_ACCESS: Final = rf"{_VARIABLE}(?:(?:\.|:|->){_VARIABLE}|\[[^\[\]]*+\])*"
"""A variable, or something in it: ``env:TOKEN``, ``this->token``, ``secrets['token']``."""
_REFERENCE: Final = (
    rf"\$(?:{_ACCESS}|[0-9](?![^-_.:/@$])|\{{[^{{}}]*+\}}|\{{\{{[^{{}}]*+\}}\}}|\([^()]*+\))"
    rf"|%(?:(?:env\()?{_VARIABLE}\)?%|\({_VARIABLE}\)[sdr]|\{{{_VARIABLE}\}}|[sdr])"
    rf"|\{{\{{[^{{}}]*+\}}\}}|\{{(?:[0-9]|{_ACCESS})(?:\(\))?(?:![rsa])?\}}|<[^<>]*+>"
)
"""A variable as shells, templates and format strings write it, or a placeholder: ``${TOKEN}``, ``%(token)s``."""
_STAND_IN_PATTERN: Final = (
    rf"(?s:(?:(?:{_REFERENCE})[-_.:/@]?)+|(?i:[^a-z0-9]*|\([a-z ._-]*\)|\[[a-z _-]*\]"
    r"|(?:your|my|insert|enter|replace|example|dummy|fake)(?:[-_ ]+(?:[a-z]+|[0-9]+(?=[-_ ]?(?:bit|byte|char))))+"
    r"[-_ .:]*"
    r"|(?:vault|op|ssm|file)::?/.*|vault:[a-z]+/.*|file:[a-z_-]+\.[a-z]{2,4}|arn:aws.*"
    r"|\{\{ [^{}]*|\$\((?:[a-z_-]+(?: .*)?|.*\))|\$?\{[a-z_.]+[\[(]"
    rf"|env:{_VARIABLE}|(?:os|process|env|secrets?|vars?|settings|config|self|this)\.{_VARIABLE}(?:[.(\[].*)?))"
)
"""A placeholder as a whole (a password may begin with any character). Expressions may be cut at a quote."""
_ENDS_OF_STAND_INS: Final = ("-here", "_here", "xxxxxxxx", "00000000", "........")
_PATH_PART: Final = r"[._]?[A-Za-z]{1,24}[0-9]{0,4}(?:[._-]{1,2}(?:[A-Za-z]{1,24}[0-9]{0,4}|[0-9]{1,4}))*+"
_PATH: Final = rf"(?:~|\.{{1,2}})?(?:/{_PATH_PART}){{2,20}}/?|[~.]{{1,2}}(?:/{_PATH_PART}){{1,20}}/?|[A-Za-z]:(?:\\{{1,8}}{_PATH_PART}){{1,20}}"
"""A path of plain words: ``/run/secrets/db_password``."""
_SCHEMES: Final = ("bearer", "basic", "token", "digest", "apikey")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_-]{1,40}")


def is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder: a variable, a type, ``<your-key>``, ``xxxx``, a field name."""
    value = value.strip()
    low = value[:200].lower()
    if low.startswith(_SCHEMES) and len(words := value.split(None, 1)) == 2 and words[0].lower() in _SCHEMES:
        value = words[1]
        low = value[:200].lower()
    if len(value) > 100:
        return len({*low}) < 4
    if low in _STAND_INS or compiled(_STAND_IN_PATTERN).fullmatch(value) or low.endswith(_ENDS_OF_STAND_INS):
        return True
    if ("/" in value or "\\" in value) and compiled(_PATH).fullmatch(value):
        return True
    if len(low) > 3 and len({*low}.difference("-_.")) < 3:
        return True
    return _IDENTIFIER.fullmatch(value) is not None and classify_name(value) is not NameClass.OPEN


_LABEL: Final = re.compile(r"[A-Za-z]+(?: [A-Za-z]+)+[.!?:]?")


def is_label(value: str) -> bool:
    """Whether a value consists of words, as a message about a key does, but no key or token."""
    return len(value) < 200 and not value.lower().startswith(_SCHEMES) and _LABEL.fullmatch(value) is not None


_PIECE: Final = re.compile(r"[A-Za-z0-9]{8,}+|[0-9][A-Za-z]{1,8}[0-9]")


def is_random(value: str) -> bool:
    """Whether the characters after a prefix look random: ``sk-learn-contrib`` and ``sk-xxxxxxxx`` don't."""
    if len({*value[:64].lower()}) < 4:
        return False
    return any(len(piece) >= 24 or not piece[1:].islower() or not piece.isalpha() for piece in _PIECE.findall(value))


# ---- shapes

TOKENS: Final = {
    "key of a model provider": "sk- gsk_ xai- pplx- r8_ nvapi- tvly- csk- fw_ lsv2_pt_ lsv2_sk_ jina_ vck_ wandb_v1_",
    "key of an agent's tool": "pcsk_ e2b_ bb_live_ bb_test_ apify_api_ composio_ exa_ steel_ phx_",
    "Hugging Face token": "hf_ api_org_",
    "GitHub token": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    "GitLab token": "glpat- gldt- glrt- glptt- glft- glimt- glagent- gloas- glsoat- glcbt- glffct-",
    "Slack token": "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-",
    "Stripe key": "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_",
    "Google OAuth secret": "gocspx- ya29.",
    "registry token": "npm_ pypi- rubygems_ dckr_pat_ dckr_oat_ clojars_ oy2_",
    "token of a host": "nfp_ nfc_ nfo_ nfu_ sb_secret_ sbp_ ccipat_ ccipwt_ bkua_ squ_ sqp_ sqa_ nrak- nraa- nrii- figd_ figu_ "
    "tk-us- tk-eu- pat-na1- pat-na2- pat-eu1- cfpat- xkeysib- xsmtpsib- ico- tfp_ aio_ sq0csp- sq0atp- flwseck_test- "
    "flwseck- rnd_ atlasv1.",
    "DigitalOcean token": "dop_v1_ doo_v1_ dor_v1_",
    "Shopify token": "shpat_ shpca_ shppa_ shpss_",
    "HashiCorp Vault token": "hvs. hvb. hvr.",
    "age key": "age-secret-key-",
    "token of a service": "lin_api_ ntn_ glsa_ glc_ pmak- pul- pnu_ rdme_ sntryu_ sntrys_ dp.pt. dp.st. tskey-auth- "
    "tskey-api- pscale_tkn_ pscale_pw_ pscale_oauth_ shippo_live_ duffel_live_ sgp_ hrku- fio-u- fo1_ dt0c01.",
}
"""Token prefixes by rule. At least 16 random characters follow."""
ANYWHERE: Final = ("gh", "gl", "xox", "xapp-", "dop_", "rubygems_", "shp")
"""Prefixes that also match within a word, since they are unambiguous."""
PREFIXES: Final = {prefix: rule for rule, prefixes in TOKENS.items() for prefix in prefixes.split()}
ENDINGS: Final = {
    ending: [prefix for prefix in PREFIXES if prefix[-3:] == ending] for ending in {prefix[-3:] for prefix in PREFIXES}
}


def _begins(literal: str) -> str:
    """`literal`, not within a word (in JSON the ``n`` of ``\\n`` may stand before it)."""
    return rf"{literal}(?:(?<![a-z0-9]{literal})|(?<=\\[nrtbf]{literal})|(?<=%[0-9a-f][0-9a-f]{literal}))"


class Shape(NamedTuple):
    """A kind of secret with a recognizable form.

    If `sign` is present, the pattern is searched in the text with ASCII letters lowered. Its named group (else the
    whole match) is the secret, if `likely` matches it in the original text.
    """

    name: str
    sign: str
    pattern: str
    likely: str = ""
    needs: tuple[str, ...] = ("",)
    """One of these also occurs in the lowered text."""


SPACE: Final = r"(?:[ \t]|\\{1,8}t)"
"""Also a tab as JSON escapes it, however often."""
BEARER: Final = rf"bearer{SPACE}{{1,4}}(?=[a-z0-9._~+/-]{{8}})"
_KEY_BLOCK: Final = r"[a-z0-9 ]{0,40}private key(?: block)?-----"
IN_ADDRESS: Final = r"://[^\s/@:\"'\\<>]*+:(?P<secret>[^\s/@\"'\\<>]++(?:@[^\s/@\"'\\<>]++(?=@))*+)@"
_QUOTED: Final = r"\\{0,8}['\"](?P<secret>[^'\"\\]{2,200}+)"
SHAPES: Final = (
    Shape(
        "private key",
        "block",
        rf"-----begin {_KEY_BLOCK}(?P<secret>[^-]*+(?:-(?!----)[^-]*+)*+)-----end {_KEY_BLOCK}"
        rf"|-----begin {_KEY_BLOCK}(?P<open>[^\"\\]*+(?:\\[^\"][^\"\\]*+)*+)",
    ),
    Shape("password in a URL", "address", IN_ADDRESS),
    Shape("AWS key", "AKIA", rf"(?:{_begins('akia')}|{_begins('asia')})[a-z0-9]{{16}}(?![a-z0-9])", "^[A-Z0-9]+$"),
    Shape("Google key", "AKIA", r"aiza[a-z0-9_-]{30,}+", "^AIza"),
    Shape("JSON web token", "eyJ", _begins("eyj") + r"[a-z0-9_-]{6,}+\.[a-z0-9_-]{6,}+(?:\.[a-z0-9_-]*+){0,3}", "^eyJ"),
    Shape("AWS Bedrock key", "AKIA", _begins("absk") + r"[a-z0-9+/]{40,}+={0,2}", "^ABSK"),
    Shape("Atlassian token", "AKIA", _begins("atatt3") + r"[a-z0-9_-]{40,}+(?:=[a-f0-9a-z]{8})?", "^ATATT3"),
    Shape(
        "cloud key",
        "AKIA",
        rf"(?:{_begins('akid')}|{_begins('ltai')}|{_begins('ezak')}|{_begins('eztk')}|{_begins('aqvn')}|{_begins('akcp')}|{_begins('eaa')})[a-z0-9_-]{{16,}}+",
        r"^(?:AKID\w{32}$|LTAI\w{12,20}$|EZ[AT]K\w{54}|AQVN[\w-]{30}|AKCp\w{60}|EAA[A-Z][\w-]{50})",
    ),
    Shape(
        "Azure client secret", "tilde", r"(?<![a-z0-9])[a-z0-9_.~-]{3}[78]q~[a-z0-9_.~-]{31,34}(?![a-z0-9])", "[78]Q~"
    ),
    Shape("Gemini key", "mark", _begins(r"aq\.") + r"ab8[a-z0-9_-]{30,}+", r"^AQ\.Ab8"),
    Shape("Terraform token", "mark", r"[a-z0-9]{14}\.atlasv1\.[a-z0-9_-]{40,}+"),
    Shape("Fly.io token", "mark", rf"(?:{_begins('fm1_')}|{_begins('fm2_')})[a-z0-9+/]{{40,}}+={{0,2}}"),
    Shape("1Password token", "mark", _begins("ops_eyj") + r"[a-z0-9+/_-]{40,}+={0,2}", "^ops_eyJ"),
    Shape("Airtable token", "mark", r"(?<![a-z0-9])pat[a-z0-9]{14}\.[0-9a-f]{64}"),
    Shape("Mapbox token", "mark", _begins(r"sk\.") + r"eyj[a-z0-9_-]{30,}+\.[a-z0-9_-]{16,}+", r"^sk\.eyJ"),
    Shape("Dropbox token", "mark", _begins(r"sl\.") + r"[a-z0-9_-]{100,}+"),
    Shape("Cloudflare key", "mark", _begins(r"v1\.0-") + r"[0-9a-f]{24}-[0-9a-f]{100,}+"),
    Shape(
        "key of a service",
        "mark",
        rf"(?:{_begins('fc-')}|{_begins('key-')})[0-9a-f]{{32}}(?![a-z0-9])|{_begins('re_')}[a-z0-9]{{8}}_[a-z0-9]{{20,}}+|{_begins('pa-')}[a-z0-9_-]{{43}}(?![a-z0-9_-])|(?<![a-z0-9])[0-9a-f]{{32}}-us[0-9]{{1,2}}(?![a-z0-9])",
        r"^(?:fc|key)-|^re_|-us\d+$|^pa-.*[0-9].*[A-Z]|^pa-.*[A-Z].*[0-9]",
    ),
    Shape(
        "key in a PuTTY file",
        "mark",
        r"private-lines:\s{0,4}[0-9]{1,4}(?:\r?\n|\\{1,8}n)(?P<secret>[a-z0-9+/=]{16,}+(?:(?:\r?\n|\\{1,8}r?\\{0,8}n)[a-z0-9+/=]{1,128}+(?![:-]))*+)",
    ),
    Shape(
        "key in a JWK",
        "name",
        r"[\"'](?:d|k|p|q|dp|dq|qi)\\{0,8}[\"']\s{0,4}:\s{0,4}\\{0,8}[\"'](?P<token>[a-z0-9_-]{16,}+)",
        needs=("kty",),
    ),
    Shape(
        "value in a cookie file",
        "literal",
        r"(?:\t|\\{1,8}t)(?:true|false)(?:\t|\\{1,8}t)[^\s\"'\\]{1,200}(?:\t|\\{1,8}t)(?:true|false)(?:\t|\\{1,8}t)[0-9]{1,12}(?:\t|\\{1,8}t)[^\s\"'\\]{1,200}(?:\t|\\{1,8}t)(?P<secret>[^\s\"'\\]++)",
        needs=("\ttrue", "\tfalse", "\\ttrue", "\\tfalse"),
    ),
    Shape(
        "password in .pgpass",
        "literal",
        r":(?:543[0-9]|6432|\*):[a-z0-9_*-]{1,64}:[a-z_*][a-z0-9_*.-]{0,63}:(?P<secret>(?!//)[^\s\"'\\:]{4,200}+)(?=\s|\\{1,8}[rn]|[\"']|$)",
    ),
    Shape(
        "password in SQL",
        "literal",
        rf"identified\s{{1,4}}(?:with\s{{1,4}}[^\s;]{{1,40}}\s{{1,4}})?by\s{{1,4}}(?:password\s{{1,4}})?{_QUOTED}",
    ),
    Shape(
        "password in SQL",
        "literal",
        rf"set\s{{1,4}}password\s{{1,4}}for\s{{1,4}}[^=;]{{1,120}}=\s{{0,4}}(?:password\()?{_QUOTED}",
    ),
    *(
        Shape(
            "password in SQL",
            "literal",
            rf"{verb}\s{{1,4}}(?:role|user|login|group)\b[^;\n]{{1,120}}?\bpassword\s{{0,4}}=?\s{{0,4}}{_QUOTED}",
        )
        for verb in ("alter", "create")
    ),
    Shape(
        "password of a command",
        "literal",
        r"[\"'][a-z_][a-z0-9_-]{0,31}:(?P<secret>[^\s\"':]{4,200}+)[\"']\s{0,4}\|\s{0,4}(?:sudo\s{1,4})?chpasswd",
        needs=("chpasswd",),
    ),
    *(
        Shape("password of a command", "literal", rf"{command}(?P<secret>[^\s\"']{{4,200}}+)")
        for command in (
            r"securestring\b[^\n]{0,80}?--value\s{1,4}",
            r"keyvault\s{1,4}secret\s{1,4}set\b[^\n]{0,200}?--value\s{1,4}",
            r"htpasswd\s{1,4}-[a-z]{0,4}b[a-z]{0,4}\s{1,4}\S{1,200}\s{1,4}\S{1,100}\s{1,4}",
        )
    ),
    Shape("bearer token", "bearer", BEARER + r"(?P<secret>[a-z0-9._~+/-]{8,}+={0,2})", ".{20}|[0-9]"),
    Shape("SendGrid key", "dots", _begins(r"sg\.") + r"[a-z0-9_-]{22}\.[a-z0-9_-]{40,}+", "^SG"),
    Shape("Discord token", "dots", r"\.(?<=[a-z0-9_-]{23}\.)(?P<token>[a-z0-9_-]{6}\.[a-z0-9_-]{27,}+)"),
    Shape("Telegram token", "AKIA", r":(?<=[0-9]{8}:)(?P<secret>aa[a-z0-9_-]{33})(?![a-z0-9_-])", "^AA"),
    Shape("Google OAuth secret", "slash", _begins("1//0") + r"[a-z0-9_-]{20,}+"),
    Shape(
        "webhook",
        "slash",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<slack>[a-z0-9/]{20,}+)"
        r"|/api/webhooks/[0-9]{10,20}/(?P<discord>[a-z0-9_-]{30,}+)",
    ),
    Shape(
        "webhook",
        "slash",
        r"webhook\.office\.com/webhookb2/(?P<teams>[a-z0-9@-]{16,}+/incomingwebhook/[a-z0-9]{16,}+[a-z0-9/-]*+)",
    ),
    Shape("signed URL", "signature", r"=(?:(?<=[?&;6]sig=)|(?<=-signature=))(?P<secret>[a-z0-9%+/_-]{16,}+=*+)"),
    Shape("key in hex", "hex", rf"(?:{_begins('sk')}|{_begins('dapi')})[0-9a-f]{{32}}(?![a-z0-9])", "^(?:SK|dapi)"),
    Shape(
        "password in .netrc",
        "machine",
        r"(?:machine\s{1,4}[^\s\"'\\]{1,200}|default)(?:(?:\s|\\n){1,8}(?:login|account)\s{1,4}[^\s\"'\\]{1,200}){0,2}(?:\s|\\n){1,8}"
        r"password\s{1,4}(?P<secret>[^\s\"'\\]++)",
    ),
)
# ---- options of commands


class Option(NamedTuple):
    """A command option that takes a secret without a secret's name."""

    name: str
    program: str
    flags: str
    value: str
    """Pattern for the secret in the option's value, including the white space before it."""


_GAP: Final = r"(?:=|\s{1,4}|\\{0,8}[\"'],?(?:\s|\\n){0,9}(?=\\{0,8}[\"']))\\{0,8}[\"']?"
_REST: Final = r"(?:(?<=[\"'])[^\"'\\\n]{2,300}+|[^\s\"'\\;|&<>`]{2,300}+)"
_SECRET: Final = rf"{_GAP}(?P<secret>{_REST})"
_PAIR: Final = (
    _GAP + rf"(?:(?<=[\"'])[^\"'\\\n:]{{0,99}}+|[^\s\"'\\:;|&<>`]{{0,99}}+):(?P<secret>{_REST})",
    _GAP + rf"(?P<secret>(?:(?<=[\"'])[^\"'=\\\n]{{1,99}}+|[^\s\"'=\\;|]{{1,99}}+)={_REST})",
)
"""``user:password`` and ``cookie=value``."""
PROGRAMS: Final = {
    "archive": r"zip|7z[az]?|unzip|sqlcmd|mongosh?", "share": "smbclient", "web": "curl|https?|xh|wget", "mysql": r"(?:mysql|mariadb)[\w-]*", "sshpass": "sshpass", "login": "login|upload",
    "redis": "redis-cli", "ldap": "ldap[a-z]{3,9}", "openssl": "openssl",
}  # fmt: skip
OPTIONS: Final = (
    Option("password of a command", "web", "u|user|a|auth|proxy-user|U", _PAIR[0]),
    Option("cookie of a command", "web", "b|cookie", _PAIR[1]),
    Option("password of a command", "mysql", "p", rf"\\{{0,8}}['\"]?(?P<secret>{_REST})"),
    Option("password of a command", "archive", "p|P", rf"(?:{_GAP}|[\"']?)(?P<secret>{_REST})"),
    Option("password of a command", "share", "u|U", rf"{_GAP}[^\s%\"']{{1,99}}%(?P<secret>{_REST})"),
    Option("password of a command", "sshpass", "p", rf"(?:{_GAP}|[\"']?)(?P<secret>{_REST})"),
    Option("password of a command", "login", "p", _SECRET),
    Option("password of a command", "redis", "a", _SECRET),
    Option("password of a command", "ldap", "w", _SECRET),
    Option("password of a command", "openssl", "pass|passin|passout", rf"{_GAP}pass:(?P<secret>{_REST})"),
)


# ---- truncated text and names

TAIL: Final = (
    r"(?:(?<![a-z0-9])(?:sk-|akia|asia|eyj|sg\.)|aiza|(?:%s))(?P<token>[a-z0-9_.-]*)$"  # noqa: UP031
    r"|bearer[ \t]{1,4}(?P<bearer>\S*)$|://[^\s/@:]{0,99}:(?!\d{1,5}$)(?P<secret>[^\s/@]+)$"
    % "|".join(("" if prefix.startswith(ANYWHERE) else "(?<![a-z0-9])") + re.escape(prefix) for prefix in PREFIXES)
)

FIELD_RULE: Final = "name of the field"
"""The rule for values that follow a secret's name."""
