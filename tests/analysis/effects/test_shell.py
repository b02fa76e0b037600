"""Effects of shell commands."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.shared import needs_shared, sample
from tracetui.analysis.effects import Certainty, Effect, Flag, Kind
from tracetui.analysis.effects.paths import Place
from tracetui.analysis.effects.shell import shell_effects
from tracetui.analysis.effects.shell_words import MAX_BYTES, NotParsed, parse_commands

HERE = Place("/home/dev/shop", "/home/dev/shop")
LABELED = [json.loads(line) for line in Path(__file__).with_name("commands.jsonl").read_text().splitlines()]
FLAGS = (Flag.PUSH, Flag.FORCE, Flag.DISCARD, Flag.OUTSIDE, Flag.SECRET)
KINDS = {Kind.DELETE: "delete", Kind.INSTALL: "install", Kind.KILL: "kill"}


def labels(command: str, place: Place = HERE) -> set[str]:
    """The effects of a command in the words of the labels."""
    names: set[str] = set()
    for effect in shell_effects(command, place):
        names |= {flag.value for flag in FLAGS if flag in effect.flags}
        names |= {KINDS[effect.kind]} if effect.kind in KINDS else set()
        names |= {"net"} if effect.kind is Kind.NET and Flag.LOCAL not in effect.flags else set()
    return names


def only(command: str, kind: Kind, place: Place = HERE) -> Effect:
    """The only effect of that kind."""
    (effect,) = (effect for effect in shell_effects(command, place) if effect.kind is kind)
    return effect


@pytest.mark.parametrize("row", LABELED, ids=lambda row: row["command"][:50])
def test_commands_have_the_labeled_effects(row: dict[str, object]) -> None:
    assert labels(str(row["command"])) == set(row["labels"])  # type: ignore[call-overload]


@needs_shared
def test_shared_labels_reach_95_percent_precision_and_90_percent_recall() -> None:
    rows = [json.loads(line) for line in sample("effects", "labels.jsonl").read_text().splitlines()]
    pairs = [(labels(row["command"], Place(row["cwd"], row["cwd"])), set(row["labels"])) for row in rows]
    right = sum(len(actual & expected) for actual, expected in pairs)
    assert right / sum(len(actual) for actual, _ in pairs) >= 0.95
    assert right / sum(len(expected) for _, expected in pairs) >= 0.9


def test_targets_are_absolute_and_follow_the_directory() -> None:
    assert only("rm a.txt", Kind.DELETE).target == "/home/dev/shop/a.txt"
    assert only("cd src && rm a.txt", Kind.DELETE).target == "/home/dev/shop/src/a.txt"
    assert only("(cd src); rm a.txt", Kind.DELETE).target == "/home/dev/shop/a.txt"
    assert only("rm ~/a.txt", Kind.DELETE).target == "/home/dev/a.txt"
    assert only("git -C ../till rm a.txt", Kind.DELETE).target == "/home/dev/till/a.txt"
    assert only("rm a.txt", Kind.DELETE, Place()).target == "a.txt"


def test_an_unknown_directory_claims_nothing_about_outside() -> None:
    assert labels('cd "$WORK" && touch a') == set()
    assert labels('cd "$WORK" && touch /etc/a') == {"outside"}


@pytest.mark.parametrize(
    ("command", "certainty"),
    [
        ("rm a", Certainty.PARSED),
        ("f=a; rm $f", Certainty.PARSED),
        ("rm $HOME/a", Certainty.PARSED),
        ("rm $f", Certainty.PATTERN),
        ("rm *.o", Certainty.PATTERN),
        ("for f in a b; do rm $f; done", Certainty.PATTERN),
        ("ls | xargs rm", Certainty.PATTERN),
        ("python -c \"import os; os.remove('a')\"", Certainty.CODE),
        ("ssh web.shop.example rm a", Certainty.REMOTE),
    ],
)
def test_certainty_says_how_the_target_is_known(command: str, certainty: Certainty) -> None:
    assert only(command, Kind.DELETE).certainty is certainty


@pytest.mark.parametrize(
    ("command", "piped"),
    [
        ("curl -s https://shop.example/i.sh | sudo bash -s -- -y", True),
        ("bash <(curl -s https://shop.example/i.sh)", True),
        ('eval "$(curl -s https://shop.example/i.sh)"', True),
        ("curl -s https://shop.example/i.py | python3", True),
        ("curl -s https://shop.example/data.json | jq .", False),
        ("bash script.sh < in.txt", False),
        ("echo ready | bash script.sh", False),
        ("curl -s https://shop.example/data.json | python3 -m json.tool", False),
    ],
)
def test_downloads_that_a_shell_runs_are_piped(command: str, *, piped: bool) -> None:
    assert any(Flag.PIPED in effect.flags for effect in shell_effects(command, HERE)) is piped


def test_the_evidence_is_the_command_in_the_text() -> None:
    text = "cd x && echo $(git push -f) # done"
    effect = only(text, Kind.VCS)
    assert effect.range is not None
    assert text[slice(*effect.range)] == "git push -f"


def test_sent_data_and_sudo_are_flagged() -> None:
    assert Flag.SEND in only("curl -d @a.json https://shop.example", Kind.NET).flags
    assert Flag.SEND not in only("curl https://shop.example", Kind.NET).flags
    assert Flag.SUDO in only("sudo -u root rm a", Kind.DELETE).flags


@pytest.mark.parametrize("text", ["a;" * 3_000, "a" * (MAX_BYTES + 1), "$(" * 100, "(" * 5_000])
def test_texts_beyond_the_limits_are_not_parsed(text: str) -> None:
    with pytest.raises(NotParsed):
        parse_commands(text)
    (effect,) = shell_effects(text, HERE)
    assert Flag.NOT_PARSED in effect.flags


def test_power_shell_is_not_parsed() -> None:
    assert any(Flag.NOT_PARSED in effect.flags for effect in shell_effects("pwsh -Command 'rm a'", HERE))


def test_broken_text_never_raises() -> None:
    chance = random.Random(7)
    texts = [str(row["command"]) for row in LABELED]
    for _ in range(3_000):
        text = list(chance.choice(texts))
        for _ in range(chance.randrange(1, 5)):
            text[chance.randrange(len(text)) : chance.randrange(len(text))] = chance.choice("\"'`$(){}<>|&;\\\n# ")
        shell_effects("".join(text), HERE)


@pytest.mark.parametrize(
    ("command", "sends"),
    [
        ("scp a.txt web.shop.example:/srv/", True),
        ("scp web.shop.example:/srv/a.txt .", False),
        ("rsync -a out dev@web.shop.example:/srv", True),
        ("aws s3 cp a.txt s3://till/", True),
        ("aws s3 cp s3://till/a.txt .", False),
        ("docker push registry.shop.example/till", True),
        ("docker pull redis", False),
        ("http POST https://api.shop.example/orders x=1", True),
    ],
)
def test_programs_that_upload_send_data(command: str, sends: bool) -> None:
    assert (Flag.SEND in only(command, Kind.NET).flags) is sends
