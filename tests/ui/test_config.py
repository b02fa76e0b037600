"""The user's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracetui.analysis.arrangement import Arrangement
from tracetui.errors import UsageError
from tracetui.ui import config
from tracetui.ui.commands import COMMANDS, of_pane
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.list.columns import COLUMNS


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "config" / "tracetui").mkdir(parents=True)
    return tmp_path / "config" / "tracetui" / "config.toml"


def test_without_a_file_everything_is_as_it_comes() -> None:
    assert config.load() == config.Config()
    assert config.bind_keys(config.load()) == COMMANDS
    assert config.load_arrangement(config.load()) == Arrangement()


def test_a_home_that_is_no_folder_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null/nowhere")
    assert config.load() == config.Config()


def test_theme_time_and_list(own_folders: Path) -> None:
    own_folders.write_text('theme = "light"\ntime = "utc"\n[list]\nsort = "time"\ngroup = "agent"\ncolumns = "all"\n')
    settings = config.load()
    assert (settings.theme, settings.time) == ("light", "utc")
    assert config.load_arrangement(settings) == Arrangement("time", group="agent", columns=(*COLUMNS,))


def test_a_key_of_the_users_own_replaces_the_first_one_and_takes_it_from_others(own_folders: Path) -> None:
    own_folders.write_text('[keys]\nfailures = "x"\nsearch = "f"\n')
    commands = config.bind_keys(config.load())
    runs = LineView()
    runs.bind_commands(of_pane("runs", commands))
    command_ids = [runs.bound[key][0].id if key in runs.bound else None for key in ("x", "f", "!", "/")]
    assert command_ids == ["failures", "search", None, None]


@pytest.mark.parametrize(
    "text", ['theme = "pink"', "theme = 3", "colour = 1", "not toml", '[list]\nsort = "x"', '[list]\nzzz = "x"']
)
def test_an_invalid_file_is_explained_in_a_sentence(own_folders: Path, text: str) -> None:
    own_folders.write_text(text)
    with pytest.raises(UsageError, match=r"config\.toml"):
        config.load()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('them = "dark"\n', r"no setting 'them'; did you mean 'theme'\?"),
        ("[list]\nsorting = 1\n", r"no setting 'sorting' in \[list\]"),
    ],
)
def test_an_unknown_setting_is_named(own_folders: Path, text: str, message: str) -> None:
    own_folders.write_text(text)
    with pytest.raises(UsageError, match=message):
        config.load()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time = 3\n", "time is 3; it can be local, utc"),
        ("time = [1]\n", "time is [1]; it can be local, utc"),
        ('theme = "drak"\n', "theme is 'drak'; it can be dark, light, high-contrast, ansi; did you mean 'dark'?"),
        ('ascii = "yes"\n', "ascii is 'yes'; it can be true or false"),
        ("traces = 1\n", "traces is 1; it can be a directory in quotes, e.g. '~/traces'"),
        ("pass = 1\n", "pass: must be a string, e.g. 'reward>=0.9', not 1"),
        ('cache_mb = "1"\n', "cache_mb is '1'; it can be a number of megabytes, 0 for no cache"),
        ("list = 1\n", "list is 1; it can be a section, [list]"),
        ("[list]\ngroup = 1\n", "group in [list] is 1; it can be day, "),
        ("[list]\ncolumns = 1\n", "columns in [list] is 1; it can be 'fitting', 'all' or a list of columns"),
        ("[keys]\nsearch = 1\n", "keys is {'search': 1}; it can be a section, [keys], with a key in quotes for each"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(own_folders: Path, text: str, message: str) -> None:
    own_folders.write_text(text)
    with pytest.raises(UsageError) as error:
        config.load()
    assert str(error.value).startswith(f"{own_folders}: {message}")


def test_a_key_for_an_unknown_command_is_reported(own_folders: Path) -> None:
    own_folders.write_text('[keys]\nfly = "x"\n')
    with pytest.raises(UsageError, match="fly"):
        config.bind_keys(config.load())


def test_the_arrangement_is_remembered_but_not_the_filter() -> None:
    config.save_arrangement(Arrangement("tokens", reverse=True, group="status", failures=True, query="x"))
    assert config.load_arrangement(config.load()) == Arrangement("tokens", reverse=True, group="status")


def test_an_unwritable_arrangement_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    config.save_arrangement(Arrangement("tokens"))
    assert config.load_arrangement(config.load()) == Arrangement()


def test_each_directory_keeps_its_own_order(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    config.save_arrangement(Arrangement("tokens", reverse=True, group="model", columns=("name", "cost")), [first])
    assert config.load_arrangement(config.Config(), [first]).sort == "tokens"
    other = config.load_arrangement(config.Config(), [second])
    assert (other.sort, other.reverse, other.group) == ("newest", False, "day")
    assert other.columns == ("name", "cost"), "columns are the same for all directories"


def test_the_orders_of_the_last_directories_are_kept(tmp_path: Path) -> None:
    for number in range(config.MAX_ORDERS + 1):
        config.save_arrangement(Arrangement("tokens"), [str(tmp_path / str(number))])
    assert config.load_arrangement(config.Config(), [str(tmp_path / "0")]).sort == "newest"
    assert config.load_arrangement(config.Config(), [str(tmp_path / "1")]).sort == "tokens"
