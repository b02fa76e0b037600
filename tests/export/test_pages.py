"""Blocks as pages and as Markdown: trees nest, nothing empty is written, what is cut says so, sizes are bounded."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from msgspec.structs import replace

from tests.context_build import ClaudeSession, filler, tool_use
from tests.views.build import make_run, make_span, researcher, runs
from tracetui.export import page as page_module
from tracetui.export.document import export_run, new_redactor, run_page, run_report
from tracetui.export.page import (
    MAX_HEAD,
    MAX_TAIL,
    MAX_WRITTEN,
    Facts,
    Link,
    Prose,
    Section,
    Step,
    Styled,
    Table,
    Tree,
    cut_lines,
    html,
    markdown,
    run_tree,
    tree_text,
    without_empty,
)
from tracetui.live.load import read_run
from tracetui.model import Body, Error, Message, Operation, Run, RunRef, Span, Status, Text
from tracetui.sources.local import LocalSource
from tracetui.text import Clean, cells
from tracetui.ui.theme import _DARK, _LIGHT

CHAT, TOOL = Operation.CHAT, Operation.EXECUTE_TOOL


def page_of(*blocks: Prose | Facts | Table | Tree) -> str:
    return b"".join(html(without_empty(blocks), "A page")).decode()


def text_of(*blocks: Prose | Facts | Table | Tree) -> str:
    return b"".join(markdown(without_empty(blocks))).decode()


class Elements(HTMLParser):
    """Checks that elements are closed in order; the deepest nesting of each, and the ids."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in ("meta", "br", "rect"):
            self.open.append(tag)
            self.depth = max(self.depth, self.open.count("details"))

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self.open.pop() == tag


@given(runs())
def test_the_tree_of_any_run_is_well_formed(run: Run) -> None:
    page, elements = page_of(*[block for block in run_page(run) if isinstance(block, Tree)]), Elements()
    elements.feed(page)
    assert elements.open == []
    assert len(elements.ids) == len(set(elements.ids)) == (len(run.spans) if run.spans else 0)
    assert elements.depth <= 45


def test_a_deep_run_is_not_nested_deeper_than_browsers_allow() -> None:
    spans = [make_span(f"s{i}", "deeper", TOOL, parent_id=f"s{i - 1}" if i else None) for i in range(2_000)]
    elements = Elements()
    elements.feed(page_of(run_tree(make_run(spans))))
    assert elements.open == []
    assert elements.depth <= 45


def test_every_step_can_be_linked_to_and_has_its_bar() -> None:
    page = page_of(*[block for block in run_page(researcher()) if isinstance(block, Tree)])
    assert all(f'id="step-{number}"' in page for number in range(1, 6))
    assert page.count("<rect") == 7
    assert 'class="bar-error" x="300.7"' in page


def test_only_our_style_and_script_are_allowed() -> None:
    page = page_of(Prose(Clean("words")))
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for tag in ("style", "script"):
        (code,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert f"{tag}-src 'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'" in policy[1]
    assert "unsafe" not in policy[1]
    assert policy[1].startswith("default-src 'none';")


def test_the_colors_are_those_of_the_app() -> None:
    page = page_of(Prose(Clean("words")))
    light, dark = re.findall(r":root \{ (.*?) \}", page, re.DOTALL)[:2]
    for theme, style in ((_LIGHT, light), (_DARK, dark)):
        for name, color in re.findall(r"--([a-z-]+): #([0-9a-f]{6});", style):
            dotted = name.replace("-", ".")
            ours = theme[dotted]
            assert color == (ours.split(" on ")[1] if dotted.endswith((".line", ".word")) else ours), name


def test_empty_columns_and_tables_are_not_written() -> None:
    table = Table(("run", "remarks", "time"), [(Clean("a"), Clean(""), Clean("832ms"))], frozenset({2}))
    for text in (page_of(table), text_of(table)):
        assert "remarks" not in text
        assert "832ms" in text
    assert "<td class=number" in page_of(table)
    assert "<table" not in page_of(Table(("run",), []))


def test_numbers_and_their_units_stay_together() -> None:
    page = page_of(Facts([("size", [Clean("81 920 B of 12 tokens, 3 steps")])]))
    assert "81\xa0920\xa0B of 12\xa0tokens, 3 steps" in page


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("input_hash=a_b, ~$0.02", "input_hash=a_b, ~$0.02"),
        ("_all_ *of* it", r"\_all\_ \*of\* it"),
        ("~$1~ to $2", r"\~\$1\~ to \$2"),
        ("at 12:30:05, :tada: <b>", r"at 12:30:05, &#58;tada: &#60;b>"),
        ("<quoted><n> took 3 < 5 -> <a href=x> </b>", "`<quoted><n>` took 3 < 5 -> &#60;a href=x> &#60;/b>"),
        ("see ftp://a and http://b|c", "see ftp&#58;//a and `http://b`&#124;c"),
        ("> is one", r"\> is one"),
        ("2026-01-02 is no list", "2026-01-02 is no list"),
        ("12) is one", r"12\) is one"),
        ("- is one", r"\- is one"),
        ("# is a heading, #12 an issue", r"\# is a heading, \#12 an issue"),
        ("[a](http://b) @me a&b &amp;", r"\[a\](`http://b`) &#64;me a&#38;b &#38;amp;"),
    ],
)
def test_markup_is_escaped_in_markdown(text: str, written: str) -> None:
    assert text_of(Prose(Clean(text))).strip() == written


def test_text_of_a_link_cannot_end_it() -> None:
    table = Table(("a",), [(Link(Clean("x](http://evil) <b>"), "here"),), (Styled(Clean("|"), "status.ok"),)])
    assert r"[x\](`http://evil`) &#60;b>](#here)" in text_of(table)
    assert "| &#124; " in text_of(table)


def test_markdown_reads_well_as_plain_text() -> None:
    text = b"".join(markdown(without_empty(run_report(researcher())))).decode()
    assert not re.search("<(br|details|summary|a)", text)
    timeline = text.split("## Timeline")[1].split("```")[1].splitlines()[1:]
    assert len(timeline) == 7
    assert all(cells(Clean(line)) <= 100 for line in timeline)
    assert timeline[-1].endswith("30.0s")
    assert "TimeoutError: search timed out after 30s · KfW 442 budget" in timeline[-1]
    rows = text_of(Table(("a", "long"), [(Clean("1"), Clean("text")), (Clean("22"), Clean("中文字"))])).splitlines()
    assert len({cells(Clean(row)) for row in rows if row}) == 1


def long_run(number: int, size: int, failed: int = 10) -> Run:
    """A run of tool calls; every `failed`-th failed, and each has an output of `size` characters."""
    ends = [(Status.ERROR, Error(f"timeout {i}")) if i % failed == 0 else (Status.OK, None) for i in range(number)]
    spans = [
        make_span(f"s{i}", "search", TOOL, i, 500, step=i + 1, status=status, error=error)
        for i, (status, error) in enumerate(ends)
    ]
    return make_run(spans, bodies={span.id: Body(output="word " * (size // 5)) for span in spans})


def test_a_long_run_is_cut_with_counts() -> None:
    number = 8_000
    page = b"".join(export_run(long_run(number, 5_000), "html", None)).decode()
    listed = page.count('class="row"')
    assert MAX_HEAD + MAX_TAIL <= listed <= MAX_HEAD + MAX_TAIL + page_module.MAX_FAILED
    counts = [int(count.replace(" ", "")) for count in re.findall(r"… ([\d ]+) more steps? \(export", page)]
    assert sum(counts) == number - listed
    (skipped,) = re.findall(r"… contents of ([\d ]+) steps left out", page)
    assert int(skipped.replace(" ", "")) > 1_000
    assert len(page) < 2 * MAX_WRITTEN
    assert 'id="step-8000"' in page
    text = b"".join(export_run(long_run(number, 5_000), "md", None)).decode()
    assert "750 more failed steps" in text
    assert len(text) < 1_500_000


def test_bodies_are_read_only_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "MAX_READ", 50_000)
    loads = list[str]()
    run = long_run(1_000, 5_000, failed=2_000)

    def load(span: Span) -> Body:
        loads.append(span.id)
        return run.load(span)

    page = page_of(run_tree(replace(run, load=load)))
    assert len(loads) <= 12
    assert "contents of 98" in page


def test_full_omits_nothing() -> None:
    page = b"".join(export_run(long_run(5_000, 100), "html", None, full=True)).decode()
    assert page.count('class="row"') == 5_000
    assert "left out" not in page
    assert "--full" not in page


def test_long_values_are_cut_in_the_middle_with_their_length() -> None:
    lines = [Clean(f"line {i}") for i in range(1_000)]
    cut = cut_lines(lines)
    assert (cut[0], cut[-1]) == (lines[0], lines[-1])
    assert "… 880 more lines (export with --full) …" in cut
    (line,) = cut_lines([Clean("x" * 50_000)])
    assert line.endswith("… [50 000 characters; export with --full]")
    assert len(line) < 5_000


def test_a_model_call_has_the_new_messages_only() -> None:
    def message(role: str, text: str) -> Message:
        return Message(role, (Text(text),))

    talk = (
        message("system", "be kind"),
        message("user", "first"),
        message("assistant", "answer"),
        message("user", "second"),
    )
    run = make_run([make_span("a", "gpt", CHAT, step=1)], bodies={"a": Body(input_messages=talk)})
    page = page_of(run_tree(run))
    assert "second" in page
    assert "be kind" not in page
    assert "… 3 earlier messages" in page
    assert "be kind" in page_of(run_tree(run, full=True))


def test_gaps_are_shown_in_text() -> None:
    tree = Tree([Step(0, 1, 0, "a", Clean("1"), Clean("◆"), "", Clean("x")), Clean("… 5 more steps …")], timed=False)
    assert list(tree_text(tree))[1] == "… 5 more steps …"


def test_changed_words_are_marked_and_escaped() -> None:
    lines = [Clean("- a [-<b>-] c"), Clean("+ a {+&+} c"), Clean("  same")]
    section = Section(Clean("x"), lines, "diff")
    page = page_of(Tree([Step(0, 1, 0, "a", Clean("1"), Clean("≠"), "", Clean("x"), sections=[section])]))
    assert '<span class="rem">- a <del>&lt;b&gt;</del> c</span>' in page
    assert '<span class="add">+ a <ins>&amp;</ins> c</span>' in page


def test_a_run_with_model_calls_has_its_context(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path / "session.jsonl")
    session.prompt(filler(100))
    session.answer("m1", tool_use("t1", "Read", file_path="app.py"), written=20_000)
    session.result("t1", filler(4_000))
    session.answer("m2", written=24_300)
    run = read_run(LocalSource(), RunRef("claude-code", str(session.write())))
    documents = export_run(run, "md", new_redactor()), export_run(run, "html", new_redactor())
    for document in documents:
        text = b"".join(document).decode()
        assert "Context" in text
        assert "Read results" in text
        assert "1 cache break missed 20.0k tokens" in text
