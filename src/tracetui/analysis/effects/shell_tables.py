"""What common programs do, as data: the tables behind the shell rules. Options are those of their manuals."""

from __future__ import annotations

import re
from typing import Final

from tracetui.analysis.effects.vocabulary import names

WRAPPERS: Final[dict[str, str]] = {
    "sudo": "ugpChDRTrt", "doas": "uC", "env": "uCS", "command": "", "builtin": "", "exec": "a", "nohup": "",
    "time": "fo", "nice": "n", "ionice": "cnp", "timeout": "ks", "gtimeout": "ks", "stdbuf": "ioe", "setsid": "",
    "xargs": "aEIiLlnPsd", "parallel": "jNS", "unbuffer": "", "caffeinate": "tw", "chronic": "", "strace": "eopsu",
    "watch": "nd", "proxychains": "f", "arch": "", "busybox": "",
}  # fmt: skip
"""Programs whose operands are a command: their short options with a value."""
RUNNERS: Final[dict[str, dict[str, frozenset[str]]]] = {
    "uv": {
        "run": frozenset({"--with", "--python", "-p", "--directory", "--project", "--group", "--extra", "--env-file"})
    },
    "poetry": {"run": frozenset()},
    "pipenv": {"run": frozenset()},
    "pdm": {"run": frozenset()},
    "hatch": {"run": frozenset()},
    "rye": {"run": frozenset()},
    "bundle": {"exec": frozenset()},
    "mise": {"exec": frozenset(), "x": frozenset()},
    "direnv": {"exec": frozenset()},
    "conda": {"run": frozenset({"-n", "-p"})},
    "pnpm": {"exec": frozenset()},
    "npm": {"exec": frozenset()},
}
"""Subcommands whose operands are a command: their options with a value."""
SHELLS: Final = names("bash sh zsh dash ksh fish ash")
INTERPRETERS: Final = names("python python2 python3 pypy3 node nodejs ruby perl deno bun php")
POWERSHELL: Final = names("pwsh powershell powershell.exe pwsh.exe cmd.exe")

NETWORK: Final = names(
    "curl wget http https httpie xh aria2c ssh sftp ftp lftp telnet nc ncat netcat ping ping6 dig nslookup host "
    "whois traceroute mosh rclone gh hub glab az gcloud aws heroku vercel flyctl fly netlify wrangler twine ngrok "
    "yt-dlp speedtest doctl s3cmd gsutil w3m lynx links kubectl npx uvx bunx pnpx wscat websocat grpcurl"
)
"""Programs that talk to another machine, whatever their operands."""
NETWORK_COMMANDS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(commands.split())
    for name, commands in {
        "docker": "pull push login search",
        "podman": "pull push login search",
        "npm": "view publish audit outdated search login info show unpublish",
        "pnpm": "view publish audit outdated dlx",
        "yarn": "dlx publish audit info",
        "apt": "update",
        "apt-get": "update",
        "apk": "update",
        "brew": "update fetch",
        "pip": "download index",
        "pip3": "download index",
        "cargo": "publish search fetch update",
        "gem": "push fetch",
        "poetry": "lock publish update",
        "helm": "pull repo install upgrade",
        "terraform": "apply init destroy",
        "uv": "lock publish tool",
        "hf": "download upload",
        "huggingface-cli": "download upload",
        "ollama": "pull push",
        "dvc": "pull push fetch",
        "mise": "install",
    }.items()
}
"""Subcommands that talk to another machine."""
INSTALLERS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(commands.split())
    for name, commands in {
        "pip": "install",
        "pip3": "install",
        "pipx": "install inject upgrade",
        "npm": "install i add ci update up",
        "pnpm": "install i add update up",
        "yarn": "add install global upgrade",
        "bun": "add install i",
        "apt": "install upgrade full-upgrade",
        "apt-get": "install upgrade dist-upgrade",
        "aptitude": "install",
        "brew": "install upgrade reinstall bundle",
        "cargo": "install add",
        "gem": "install",
        "bundle": "install add update",
        "apk": "add",
        "dnf": "install",
        "microdnf": "install",
        "yum": "install",
        "zypper": "install in",
        "conda": "install create",
        "mamba": "install create",
        "micromamba": "install create",
        "poetry": "add install",
        "pdm": "add install",
        "pipenv": "install",
        "composer": "require install",
        "mise": "install use",
        "asdf": "install",
        "snap": "install",
        "flatpak": "install",
        "port": "install",
        "choco": "install",
        "winget": "install",
        "scoop": "install",
        "opam": "install",
        "luarocks": "install",
        "rustup": "install update",
        "nvm": "install",
        "pyenv": "install",
        "playwright": "install",
        "corepack": "prepare",
        "tlmgr": "install",
        "uv": "add sync",
    }.items()
}
"""Subcommands that install packages. Each also reaches a package index."""
LOCAL_INSTALLERS: Final = names("dpkg rpm")
"""They install a file, and reach no package index."""
OPTION_INSTALLERS: Final = {
    "pacman": ("-S", "-U"), "nix-env": ("-i", "--install"), "dpkg": ("-i", "--install"),
    "rpm": ("-i", "-U", "--install", "--upgrade"),
}  # fmt: skip
"""Programs with an option that installs."""
DOUBLE_INSTALLERS: Final = frozenset(
    {("uv", "pip", "install"), ("uv", "tool", "install"), ("uv", "python", "install"), ("uv", "pip", "sync"),
     ("dotnet", "add", "package"), ("helm", "plugin", "install"), ("krew", "", "install")}
)  # fmt: skip
READERS: Final = names(
    "cat bat head tail less more nl tac od xxd hexdump strings base64 cut sort uniq source . diff cmp zcat view "
    "openssl grep egrep fgrep rg ag awk gawk jq yq sed tr fold paste column gpg age ssh-add ssh-keygen vim nano"
)
"""Programs that read and show the files that they are given."""
PATTERN_FIRST: Final = names("grep egrep fgrep rg ag awk gawk jq yq sed tr")
"""Readers whose first operand is a pattern or program."""
NAMES_ONLY: Final = names(
    "ls stat file wc du test [ touch mkdir rm rmdir unlink shred srm trash mv chmod chown chgrp ln echo printf git "
    "find which basename dirname realpath readlink md5sum sha1sum sha256sum shasum cd pushd export "
    "tree gitleaks kill pkill"
)
"""Programs that don't show the content of the files that they are given."""
OUTPUT_OPTION: Final = names("go gcc cc g++ clang clang++ rustc ld nasm pandoc sort esbuild uglifyjs")
"""Programs with ``-o FILE``."""
VALUES: Final[dict[str, str]] = {
    "curl": "oHdFTuXAbceEKmQrtwxyYzD", "wget": "OPoaeUtTwQiBSA", "head": "nc", "tail": "nc", "touch": "dtr",
    "mkdir": "m", "mktemp": "pt", "cp": "tS", "mv": "tS", "ln": "tS", "install": "tSmgo", "tee": "", "sed": "efl",
    "truncate": "sr",
    "grep": "efABCmdD", "egrep": "efABCmdD", "fgrep": "efABCmdD", "rg": "efABCmgtTjE", "awk": "vfF", "gawk": "vfF",
    "cut": "dfcb", "sort": "kotTS", "tar": "CfXTI", "unzip": "dxP", "kill": "sn", "pkill": "sgGPtuUF", "killall": "su",
    "scp": "PiFcloSJ", "rsync": "eTBf", "ssh": "bcDEeFIiJLlmOopQRSWw", "zip": "xi", "patch": "pdio", "shred": "ns",
    "go": "o", "gcc": "oIlLD", "cc": "oIlLD", "clang": "oIlLD", "g++": "oIlLD", "rustc": "oLlC", "pandoc": "oft",
    "fuser": "n", "jq": "L", "openssl": "", "ping": "ciWwst", "nc": "wpsx", "column": "st", "fold": "w", "base64": "w",
    "psql": "hpUdcf", "pg_dump": "hpUf", "mysql": "hPuDe", "redis-cli": "hpna",
    "pip": "rceti", "pip3": "rceti", "xxd": "lsc", "od": "ANjtw", "hexdump": "ns", "dig": "tp",
}  # fmt: skip
"""Short options with a value, by program."""
LONG_VALUES: Final[dict[str, frozenset[str]]] = {
    program: names(" ".join(f"--{option}" for option in options.split()))
    for program, options in {
        "curl": "output header data data-raw data-binary json form upload-file request user url max-time "
        "connect-timeout retry cookie user-agent write-out",
        "wget": "output-document directory-prefix header post-data post-file method",
        "cp": "target-directory", "mv": "target-directory", "tar": "directory file", "sed": "expression file",
        "grep": "regexp file include exclude exclude-dir", "rg": "regexp file glob type",
        "gh": "method field raw-field title body json jq repo", "rsync": "exclude include rsh files-from",
        "touch": "reference date", "truncate": "size", "mkdir": "mode", "psql": "host port username dbname command",
        "mysql": "host port user execute",
    }.items()
}  # fmt: skip
"""Long options with a value, by program."""
STOPS: Final[dict[str, frozenset[str]]] = {
    "systemctl": names("stop kill restart"), "service": names("stop"),
    "launchctl": names("kill bootout unload stop"), "docker": names("stop kill"), "podman": names("stop kill"),
    "docker-compose": names("down stop kill"), "pm2": names("stop kill delete"),
}  # fmt: skip
"""Subcommands that stop processes."""
KEYCHAINS: Final = frozenset(
    {("vault", "read"), ("vault", "kv"), ("op", "read"), ("op", "item"), ("pass", "show"), ("gcloud", "secrets")}
)
"""Commands that show secrets."""
DATABASES: Final = names(
    "psql pg_dump pg_restore mysql mysqldump mariadb redis-cli mongosh mongodump clickhouse-client"
)
"""Programs that talk to another machine if an option or a URL names it."""
LOCAL_COMMANDS: Final = names("version help config configure completion alias")
"""Subcommands of programs of `NETWORK` that stay on this machine."""
SENDS: Final = names("push publish upload")
"""Subcommands of `NETWORK_COMMANDS` that send data."""
GH_SENDS: Final = names("create edit merge close comment delete review ready reopen archive upload rename")
DATA_OPTIONS: Final = (
    "-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--json", "-F", "--form", "-T", "--upload-file",
    "--post-data", "--post-file", "--body-data",
)  # fmt: skip
BUCKET: Final = re.compile(r"(?:s3|gs)://|[\w-]+:(?!\\)")

SECRET_VARIABLE: Final = re.compile(
    r"\$\{?[A-Za-z_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|ACCESS_KEY|CREDENTIALS?)[A-Za-z_]*\}?(?![\w:+-])"
)
SECRET_NAME: Final = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|ACCESS_KEY|CREDENTIAL)", re.IGNORECASE
)
URL: Final = re.compile(r"\b(?:https?|ftps?|ssh|git|wss?|s3|gs)://[^\s'\"<>)`]+")
HOST: Final = re.compile(
    r"(?:[\w.-]+@)?(?:[\w-]+\.)+[a-z]{2,}(?=[:/]|$)|(?:\d{1,3}\.){3}\d{1,3}(?=[:/]|$)|localhost\b|\[::1\]"
)
LOCAL: Final = re.compile(
    r"^(?:\w+://)?(?:[^@/]*@)?(?:localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|host\.docker\.internal)(?=[:/?]|$)",
    re.IGNORECASE,
)
REMOTE_PATH: Final = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!\\)|rsync://")

_QUOTED: Final = r"""(?:\s*(?:[rbfu]{0,2}['"`]([^'"`\n]*)['"`]|([^\s,()]{1,80})))?"""
CODE: Final = tuple(
    (kind, re.compile(pattern + _QUOTED))
    for kind, pattern in (
        (
            "delete",
            r"(?:(?<!\w)(?:os\.(?:remove|unlink|rmdir|removedirs)|shutil\.rmtree|rmtree|(?:\w+\.)?(?:unlink|rm|rmdir)Sync|"
            r"fs(?:\.promises)?\.(?:unlink|rm|rmdir)|File\.(?:delete|unlink)|FileUtils\.rm\w*|Deno\.remove\w*)\s*\("
            r"|(?<![\w.$@])(?:unlink|rmtree|File\.(?:delete|unlink)|FileUtils\.rm\w*)[ (]+(?=['\"]))",
        ),
        (
            "write",
            r"(?<!\w)(?:os\.(?:makedirs|mkdir)|(?:\w+\.|\)\.)?(?:writeFile|appendFile|mkdir)(?:Sync)?|File\.write|"
            r"FileUtils\.(?:mkdir_p|touch)|Deno\.writeTextFile\w*)\s*\(",
        ),
        (
            "net",
            r"(?<!\w)(?:requests\.(?:get|post|put|patch|delete|head|request)|(?:urllib\.request\.)?(?:urlopen|urlretrieve)|"
            r"httpx\.(?:get|post|put|patch|delete|head|stream|request)|http\.client\.HTTPS?Connection|fetch|axios(?:\.\w+)?|"
            r"https?\.(?:get|request)|Net::HTTP\.\w+|socket\.create_connection|smtplib\.SMTP\w*)\s*\(",
        ),
        ("kill", r"(?<!\w)(?:os\.kill(?:pg)?|process\.kill)\s*\("),
        ("read", r"(?<!\w)(?:load_dotenv|(?:\w+\.|\)\.)?readFile(?:Sync)?|File\.read)\s*\("),
    )
)
"""Calls in programs given to an interpreter: kind, and the call up to its first argument."""
CODE_OPEN: Final = re.compile(
    r"""(?<![\w.])open\(\s*(?:[rbfu]{0,2}['"]([^'"\n]*)['"]|([^,()\n]{1,80}))\s*(?:,\s*(?:mode\s*=\s*)?['"]([rwaxbt+]{1,4})['"])?"""
)
CODE_PATH: Final = re.compile(
    r"""Path\(\s*[rf]?['"]([^'"\n]*)['"]\s*\)\.(write_text|write_bytes|unlink|rmdir|mkdir|touch|read_text|read_bytes)\("""
)
CODE_COPY: Final = re.compile(
    r"""(?<!\w)(?:shutil\.(?:copy\w*|move)|os\.(?:rename|replace)|(?:fs\.)?(?:rename|copyFile|cp)(?:Sync)?)\("""
    r"""[^,\n]{1,200},\s*(?:[rf]?['"]([^'"\n]*)['"]|([^\s,()]{1,80}))"""
)
CODE_SHELL: Final = re.compile(
    r"""(?<!\w)(?:os\.(?:system|popen)|subprocess\.(?:run|call|check_call|check_output|Popen|getoutput)|(?:\w+\.)?exec(?:File)?(?:Sync)?|"""
    r"""system|spawnSync)\(\s*(?:f?r?(['"`])((?:\\.|(?!\1).){0,2000})\1|\[([^\]]{0,2000})\])"""
)
CODE_ENVIRONMENT: Final = re.compile(
    r"""(?:os\.environ(?:\.get\(|\[)|os\.getenv\(|process\.env(?:\.|\[)|ENV(?:\[|\.fetch\())\s*['"]?(\w{1,80})"""
)
