"""A server that is gone, slow, broken, of another schema or forbidden: one sentence, with the next step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tests.stores import many
from tests.stores.conftest import Server, Store, certificate, make
from tests.stores.test_equal import SAMPLES, requests_in
from tracetui.errors import UsageError
from tracetui.live.load import Reader
from tracetui.live.scan import scan
from tracetui.model import RunRef
from tracetui.sources.base import LinkLost
from tracetui.sources.clickhouse import credentials, parse, source, take_passwords
from tracetui.sources.clickhouse.source import ClickHouseSource
from tracetui.sources.clickhouse.sql import Statement
from tracetui.sources.locations import parent

TRACE = "a1" * 16


@pytest.fixture
def garden(map_store: Store) -> Store:
    """A store with two traces."""
    map_store.write(requests_in(SAMPLES / "genai" / "input" / "greenhouse.otlp.jsonl"))
    return map_store


def sentence(stderr: str) -> str:
    """The error that a command printed, which must be one line."""
    assert stderr.startswith("tracetui: ")
    assert stderr.count("\n") == 1
    assert "Traceback" not in stderr
    return stderr.removeprefix("tracetui: ").strip()


# ------------------------------------------------------------------------------------------------- the server


def test_no_server(cli: Cli) -> None:
    result = cli("ls", "clickhouse://127.0.0.1:9/otel")
    assert result.status == 1
    assert sentence(result.err) == "can't reach 127.0.0.1:9; is it the HTTP port of ClickHouse?"


def test_no_library_writes_to_the_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tracetui", "ls", "clickhouse://rose:s3cret@127.0.0.1:9/otel"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert sentence(done.stderr).startswith("can't reach 127.0.0.1:9")
    assert done.stdout == ""


def test_no_database_and_no_table(server: Server, map_store: Store, cli: Cli) -> None:
    assert "doesn't exist, or your user may not read it" in cli("ls", map_store.url + "x").err
    assert "otel_traces_x doesn't exist" in cli("ls", f"{map_store.url}.otel_traces_x").err

    server.send(f"CREATE TABLE {map_store.name}.notes (TraceId String) ENGINE = MergeTree ORDER BY TraceId")
    assert "notes has no column Timestamp; expected the table of the" in cli("ls", f"{map_store.url}.notes").err


def test_an_empty_database(map_store: Store, cli: Cli) -> None:
    assert "no traces in clickhouse://" in cli("ls", map_store.url).err


def test_a_wrong_password(garden: Store, cli: Cli) -> None:
    garden.server.fault("login")
    result = cli("ls", garden.url.replace("//", "//rose@"))
    garden.server.fault()

    assert "refuses the user 'rose'; set CLICKHOUSE_PASSWORD, or name another: clickhouse://USER@" in sentence(
        result.err
    )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("denied", "its user may not read the table; `GRANT SELECT` on it and on its _trace_id_ts"),
        ("timeout", "the query took more than 30 s; narrow it with since: or a smaller --limit"),
        ("gateway", "answers with HTTP status 502; is it the HTTP port of ClickHouse?"),
        ("late", "the server is out of memory for this query; narrow it with since: or a smaller --limit"),
        ("half", "sent half an answer"),
    ],
)
def test_a_refusal_of_the_server_is_one_sentence(garden: Store, cli: Cli, kind: str, reason: str) -> None:
    garden.server.fault(kind)
    result = cli("ls", garden.url)
    garden.server.fault()

    assert result.status == 1
    assert sentence(result.err).endswith(reason)


def test_no_permission_for_one_table(garden: Store, cli: Cli) -> None:
    garden.server.fault("denied")
    result = cli("show", f"{garden.url}/{TRACE}")
    garden.server.fault()

    assert result.status == 1
    assert "may not read the table" in sentence(result.err)


def test_a_connection_that_rested_too_long_is_made_again(garden: Store, cli: Cli) -> None:
    garden.server.fault("idle")
    result = cli("ls", garden.url)
    garden.server.fault()

    assert result.status == 0
    assert TRACE in result.text


@pytest.mark.parametrize("kind", ["half", "refused", "late", "gateway"])
def test_a_broken_connection_is_tried_again(garden: Store, kind: str) -> None:
    with ClickHouseSource(parse(garden.url)[0], limit=10) as store:
        reader = Reader(store, RunRef("otlp", f"{garden.url}/{TRACE}"))
        store.connect()
        garden.server.fault(kind)
        reader.read()
        assert reader.lost
        garden.server.fault()
        reader.catch_up()
        assert len(reader.build().spans) == 5


def test_a_slow_server_times_out(garden: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CONNECT_SECONDS", 1)
    monkeypatch.setattr(source, "QUERY_SECONDS", 0)
    with ClickHouseSource(parse(garden.url)[0], limit=10) as store:
        garden.server.fault("slow")
        with pytest.raises(LinkLost, match="doesn't answer in time"):
            store.connect()
        garden.server.fault()


def test_a_proxy_of_the_environment_is_used(garden: Store, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{garden.server.port}")
    result = cli("ls", f"clickhouse://db.invalid:8123/{garden.name}")

    assert result.status == 0
    assert f"clickhouse://db.invalid:8123/{garden.name}/{TRACE}" in result.text


# ------------------------------------------------------------------------------------------------- TLS


def test_tls_is_verified(garden: Store, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = garden.server
    url = f"clickhouses://127.0.0.1:{server.tls_port}/{garden.name}"
    refused = sentence(cli("ls", url).err)
    assert refused.endswith("has no valid certificate; set SSL_CERT_FILE to that of its authority")

    monkeypatch.setenv("SSL_CERT_FILE", str(server.pem))
    assert TRACE in cli("ls", url).text
    assert "has no valid certificate" in sentence(cli("ls", url.replace("127.0.0.1", "localhost")).err)  # another name

    certificate(tmp_path / "other.pem", "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
    assert "has no valid certificate" in sentence(cli("ls", url).err)


def test_plain_http_where_tls_is_expected_and_the_other_way_round(garden: Store, cli: Cli) -> None:
    server = garden.server
    plain = sentence(cli("ls", f"clickhouses://127.0.0.1:{server.port}/{garden.name}").err)
    assert plain.endswith("doesn't speak TLS as expected; is it the HTTPS port of ClickHouse?")
    assert "127.0.0.1" in sentence(cli("ls", f"clickhouse://127.0.0.1:{server.tls_port}/{garden.name}").err)


# ------------------------------------------------------------------------------------------------- limits


def test_every_query_is_read_only_and_bound(garden: Store, cli: Cli) -> None:
    garden.server.log()
    cli("show", f"{garden.url}/{TRACE}")
    asked = [entry for entry in garden.server.log() if "otel" in entry["sql"]]

    assert asked
    for entry in asked:
        assert entry["readonly"] == "2"
        assert int(entry["max_execution_time"]) <= 30
        assert int(entry["max_result_rows"]) <= source.MAX_ROWS
        assert TRACE not in entry["sql"]


@pytest.mark.parametrize("hostile", ["x' OR 1=1 --", "x\\", "x\\' OR 1=1 --", "x\t', 'a1", "{limit:UInt64}"])
def test_a_hostile_id_is_a_parameter(garden: Store, cli: Cli, hostile: str) -> None:
    result = cli("show", f"{garden.url}/{hostile}")
    assert result.status == 1
    assert result.out == b""


def test_texts_reach_the_server_as_they_are(map_store: Store) -> None:
    texts = ["it's", "a\\b", "tab\there", "line\nbreak", "ümlaut 🌱", "{x:String}", "", "\\'", "long " * 2000]
    query = "SELECT {one:String} AS one, {all:Array(String)} AS all"
    for text in texts:
        (answer,) = (source.Client(parse(map_store.url)[0]).query(Statement(query, {"one": text, "all": texts})),)
        assert json.loads(answer) == {"one": text, "all": texts}


def test_a_trace_beyond_the_limit_is_refused(
    server: Server, map_store: Store, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    server.send(many.insert(map_store.name, 3))
    monkeypatch.setattr(source, "MAX_SPANS", 5)
    assert "not read: a trace of more than 5 spans" in cli("ls", map_store.url).text


def test_a_trace_of_too_many_rows_hides_no_other(server: Server, map_store: Store, cli: Cli) -> None:
    server.send(many.insert(map_store.name, 3))
    server.send(
        f"INSERT INTO {map_store.name}.otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, SpanName, Duration) "
        f"SELECT toDateTime64(now(), 9), '{TRACE}', hex(number + 1), if(number = 0, '', '1'), 'step', 1 "
        "FROM numbers(300000)"
    )
    result = cli("ls", map_store.url)
    assert result.text.count("Book flight") == 3
    assert "not read: a trace of more than 200,000 spans" in result.text
    assert "not read: a trace of more than 200,000 spans" in sentence(cli("show", f"{map_store.url}/{TRACE}").err)
    with ClickHouseSource(parse(map_store.url)[0], limit=10) as store:
        listed = list(scan(store, [map_store.url], deep=False))
    assert sorted(file.kind for file in listed) == ["listed", "listed", "listed", "problem"]


def test_an_answer_beyond_the_limit_is_refused(garden: Store, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setitem(source.LIMITS, "max_result_rows", 1)
    assert "the answer is larger than" in cli("ls", garden.url).err


def test_a_hundred_thousand_spans(server: Server, cli: Cli) -> None:
    store = make(server)
    server.send(many.insert(store.name, 10_000))
    runs = cli("ls", store.url, "--limit", "50", "--json").data["runs"]

    assert len(runs) == 50
    assert runs[0]["id"] == f"{9_999:032x}"
    assert {run["spans"] for run in runs} == {many.SPANS}
    failed = cli("ls", store.url, "--limit", "20", "-q", "status:error tool:mail", "--json").data["runs"]
    assert len(failed) == 20
    assert {int(run["id"], 16) % 50 for run in failed} == {7}
    assert cli("show", f"{store.url}/{7:032x}", "--json").data["run"]["status"] == "error"


# ------------------------------------------------------------------------------------------------- passwords

SECRET = "s3cr/t:@x"
WORD = "clickhouse://rose:s3cr/t:@x@box:8123/otel"


def test_a_password_is_no_part_of_an_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (word, option) = take_passwords([WORD, f"--trace-dir={WORD}"])

    assert word == "clickhouse://rose@box:8123/otel"
    assert option == f"--trace-dir={word}"
    assert credentials(parse(word)[0]) == ("rose", SECRET)
    monkeypatch.setenv("CLICKHOUSE_PASSWORD", "other")
    assert credentials(parse("clickhouse://lily@box/otel")[0]) == ("lily", "other")
    assert credentials(parse("clickhouse://box/otel")[0]) == ("default", "other")
    monkeypatch.delenv("CLICKHOUSE_PASSWORD")
    (tmp_path / "netrc").write_text("machine box login fern password leaf\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert credentials(parse("clickhouse://box/otel")[0]) == ("fern", "leaf")
    assert credentials(parse("clickhouse://other/otel")[0]) == ("default", "")


@pytest.mark.parametrize(
    "word", [WORD.replace("/otel", ""), "clickhouse://a:s3cr@c", "clickhouse://a:s3cr@c:99999999/d"]
)
def test_no_error_quotes_a_password(word: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(word)
    assert "s3cr" not in str(raised.value)


def test_the_password_leaves_the_process_list(tmp_path: Path) -> None:
    code = (
        "import sys, tracetui.cli, tracetui.cli.ls as ls\n"
        "from tracetui.sources.clickhouse import credentials, parse\n"
        "def run(args):\n"
        "    print(open('/proc/self/cmdline', 'rb').read(), args.paths, 'TRACETUI_CLICKHOUSE_PASSWORDS' in "
        "__import__('os').environ)\n"
        "    print(credentials(parse(args.paths[0])[0]))\n"
        "    return 0\n"
        "ls.run = run\n"
        "raise SystemExit(tracetui.cli.main())\n"
    )
    script = tmp_path / "run.py"
    script.write_text(code)
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("this system has no /proc")
    done = subprocess.run(
        [sys.executable, str(script), "ls", WORD], capture_output=True, text=True, timeout=60, check=True
    )
    command_line, received = done.stdout.splitlines()

    assert "s3cr" not in command_line
    assert command_line.endswith("['clickhouse://rose@box:8123/otel'] False")
    assert received == str(("rose", SECRET))


# ------------------------------------------------------------------------------------------------- addresses


def test_addresses() -> None:
    database, below = parse("clickhouses://rose@box/otel.spans/abc/3")
    assert (database.secure, database.port, database.user, database.name) == (True, 8443, "rose", "otel")
    assert (database.table, below) == ("spans", ["abc", "3"])
    assert database.path("abc") == "clickhouses://rose@box/otel.spans/abc"
    assert parent("clickhouses://rose@box/otel.spans/abc") == database.folder
    assert parse("clickhouse://[::1]:9000/otel")[0].host == "::1"
    for word in ("clickhouse://box", "clickhouse:///otel", "clickhouse://box:x/otel"):
        with pytest.raises(UsageError, match="write clickhouse://USER@HOST:8123/DATABASE"):
            parse(word)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setitem(sys.modules, "clickhouse_connect", None)
    assert "pip install 'tracetui[clickhouse]'" in cli("ls", "clickhouse://127.0.0.1:9/otel").err
