"""The page of a session is its story: folds, Markdown without markup of the trace, and no script."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import msgspec

from tests.views.build import make_run, make_span
from tracetui.export.document import export_run, new_redactor
from tracetui.model import Body, Error, Message, Operation, Run, Status, Text

TOOL, MESSAGE, CHAT = Operation.EXECUTE_TOOL, Operation.MESSAGE, Operation.CHAT


def session(bodies: dict[str, Body]) -> Run:
    spans = [
        make_span("u", "user", MESSAGE, 0, preview="fix the parser"),
        *(make_span(f"r{i}", "Read", TOOL, 1 + i, 100, preview=f"/a/{i}.py", status=Status.OK) for i in range(3)),
        make_span("e", "Edit", TOOL, 5, 100, preview="/a/1.py", status=Status.OK),
        make_span("f", "Bash", TOOL, 6, 100, preview="pytest", status=Status.ERROR, error=Error("Exit code 1\n<b>no")),
        make_span("h", "PostToolUse", Operation.HOOK, 7),
        make_span("c", "opus", CHAT, 8, 100, preview="done", status=Status.OK),
        make_span("u2", "user", MESSAGE, 4000, preview="thanks"),
        make_span("c2", "opus", CHAT, 4001, 100, preview="bye", status=Status.OK),
    ]
    run = make_run(spans)
    return msgspec.structs.replace(run, load=lambda span: bodies.get(span.id, Body()))


def page(text: str = "done", **bodies: Body) -> str:
    answer = Body(output_messages=(Message("assistant", (Text(text),)),))
    edit = Body(input={"file_path": "/a/1.py", "old_string": "a", "new_string": "b"})
    run = session({"c": answer, "e": edit, "f": Body(input={"command": "pytest"}), **bodies})
    return b"".join(export_run(run, "html", new_redactor())).decode()


def rows(html: str) -> list[str]:
    folds = re.findall(r'<span class="fold[^"]*">(.*?)</span><span class="t">', html)
    return [re.sub(r"<[^>]*>", "", fold) for fold in folds]


def test_rows_are_those_of_the_story_with_failure_and_edit_open() -> None:
    html = page()
    assert rows(html) == [
        "read 3 files 0.py, 1.py, 2.py",
        "edited 1.py +1 −1",
        "ran pytest · exit 1  &lt;b&gt;no",
        "1 hook",
        "bye",
    ]
    opened = re.findall(r"<details id=\"[^\"]*\" open>.*?class=\"fold\">(.*?)</summary>", html)
    assert [("edited" in row, "exit 1" in row) for row in opened] == [(True, False), (False, True)]
    assert "idle 1h06m" in html


def test_the_page_has_no_script_and_a_policy_with_the_hash_of_its_style() -> None:
    html = page()
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style is not None
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:" in html
    assert "<script" not in html
    assert " style=" not in html


def test_replies_are_markdown_without_links_images_or_html() -> None:
    text = (
        "**Fixed** `x`\n\n<img src=x onerror=1>\n\n[a](http://b) ![c](http://d) <http://e> &#x202e; javascript:1\n\n"
        "| a |\n|:-:|\n| b |"
    )
    html = page(text)
    assert "<strong>Fixed</strong> <code>x</code>" in html
    assert "<td>b</td>" in html
    assert not re.search(r"<img|href=\"http|‮| onerror=1>", html)


def test_secrets_are_masked_before_the_page_is_made() -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    html = page(f"the key is {key}")
    assert key not in html
    assert "masked" in html


def test_a_long_reply_is_cut_with_an_ellipsis() -> None:
    html = page("word " * 10_000)
    assert "<p>…</p>" in html
