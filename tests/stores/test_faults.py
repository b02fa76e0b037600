"""A server that is gone, slow, broken, of another schema or forbidden: one sentence, with the next step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tests.stores import many
from tests.stores.conftest import Server, Store, make
from tests.stores.test_equal import SAMPLES, requests_in
from tracetui.errors import UsageError
from tracetui.live.load import Reader
from tracetui.model import RunRef
from tracetui.sources.base import LinkLost
from tracetui.sources.clickhouse import client, source
from tracetui.sources.clickhouse.source import ClickHouseSource
from tracetui.sources.clickhouse.url import credentials, parse, take_passwords
from tracetui.sources.locations import parent

TRACE = "a1" * 16


@pytest.fixture
def garden(map_store: Store) -> Store:
    """A store with two traces."""
    map_store.write(requests_in(SAMPLES / "genai" / "input" / "greenhouse.otlp.jsonl"))
    return map_store


def sentence(found: str) -> str:
    """The error that a command printed, which must be one line."""
    assert found.startswith("tracetui: ")
    assert found.count("\n") == 1
    assert "Traceback" not in found
    return found.removeprefix("tracetui: ").strip()


# ------------------------------------------------------------------------------------------------- the server


def test_no_server(cli: Cli) -> None:
    found = cli("ls", "clickhouse://127.0.0.1:9/otel")
    assert found.status == 1
    assert sentence(found.err) == "can't reach 127.0.0.1:9; is it the HTTP port of ClickHouse?"


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
    found = cli("ls", garden.url.replace("//", "//rose@"))
    garden.server.fault()

    assert "refuses the user 'rose'; set CLICKHOUSE_PASSWORD, or name another: clickhouse://USER@" in sentence(
        found.err
    )


@pytest.mark.parametrize("kind", ["half", "refused"])
def test_a_broken_connection_is_tried_again(garden: Store, kind: str) -> None:
    with ClickHouseSource(parse(garden.url)[0], limit=10) as store:
        reader = Reader(store, RunRef("otlp", f"{garden.url}/{TRACE}"))
        store.connect()
        garden.server.fault(kind)
        reader.read()
        assert reader.lost
        assert garden.name not in reader.lost or "half" in reader.lost
        garden.server.fault()
        reader.catch_up()
        assert len(reader.build().spans) == 5


def test_a_slow_server_times_out(garden: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_SECONDS", 1)
    monkeypatch.setattr(client, "QUERY_SECONDS", 0)
    with ClickHouseSource(parse(garden.url)[0], limit=10) as store:
        garden.server.fault("slow")
        with pytest.raises(LinkLost, match="doesn't answer in time"):
            store.connect()
        garden.server.fault()


# ------------------------------------------------------------------------------------------------- limits


def test_every_query_is_read_only_and_bound(garden: Store, cli: Cli) -> None:
    garden.server.log()
    cli("show", f"{garden.url}/{TRACE}")
    asked = [one for one in garden.server.log() if "otel" in one["sql"]]

    assert asked
    for one in asked:
        assert one["readonly"] == "2"
        assert int(one["max_execution_time"]) <= 30
        assert int(one["max_result_rows"]) <= client.MAX_ROWS
        assert TRACE not in one["sql"]


def test_a_hostile_id_is_a_parameter(garden: Store, cli: Cli) -> None:
    found = cli("show", f"{garden.url}/x' OR 1=1 --")
    assert found.status == 1
    assert found.out == b""


def test_a_trace_beyond_the_limit_is_refused(
    server: Server, map_store: Store, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    server.send(many.insert(map_store.name, 3))
    monkeypatch.setattr(source, "MAX_SPANS", 5)
    assert "not read: a trace of 10 spans, more than 5" in cli("ls", map_store.url).text


def test_an_answer_beyond_the_limit_is_refused(garden: Store, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setitem(client.LIMITS, "max_result_rows", 1)
    assert "the answer is larger than" in cli("ls", garden.url).err


def test_a_hundred_thousand_spans(server: Server, cli: Cli) -> None:
    store = make(server)
    server.send(many.insert(store.name, 10_000))
    found = cli("ls", store.url, "--limit", "50", "--json").data["runs"]

    assert len(found) == 50
    assert found[0]["id"] == f"{9_999:032x}"
    assert {run["spans"] for run in found} == {many.SPANS}
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
        "from tracetui.sources.clickhouse.url import credentials, parse\n"
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
    shown, found = done.stdout.splitlines()

    assert "s3cr" not in shown
    assert shown.endswith("['clickhouse://rose@box:8123/otel'] False")
    assert found == str(("rose", SECRET))


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
