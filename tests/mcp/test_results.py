from __future__ import annotations

import base64
from typing import Any

import pytest

from hel_lsp.mcp.results import to_result
from hel_lsp.mcp.text import harmless


def text(content: Any, **more: Any) -> str:
    return to_result({"content": content, **more}, None).text


def test_text_blocks_are_joined() -> None:
    assert text([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]) == "one\ntwo"


def test_an_embedded_text_resource_comes_with_its_uri() -> None:
    assert text([{"type": "resource", "resource": {"uri": "file:///a", "text": "hi"}}]) == "file:///a:\nhi"


def test_what_is_no_text_leaves_a_note_with_kind_and_size() -> None:
    image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"x" * 12_000).decode()}
    blob = {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "a/b", "blob": "AAAA"}}
    link = {"type": "resource_link", "name": "doc", "uri": "file:///c"}
    assert text([image, blob, link]).splitlines() == [
        "[image omitted: image/png, 12 kB]",
        "[resource omitted: file:///b, a/b, 3 bytes]",
        "[resource link: doc file:///c]",
    ]


def test_without_text_the_structured_content_is_given() -> None:
    assert text([], structuredContent={"port": 80, "ö": None}) == '{"port": 80, "ö": null}'
    assert text([{"type": "text", "text": "80"}], structuredContent={"port": 80}) == "80"


def test_is_error_is_a_failed_result() -> None:
    assert to_result({"content": [{"type": "text", "text": "no"}], "isError": True}, None).status == "failed"
    assert to_result({"content": []}, None).status == "completed"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([{"type": "hologram", "text": "seen"}], "seen\n[the text above is of a block of the type hologram]"),
        ([{"type": "hologram", "beam": 1}], "[hologram omitted: 31 bytes]"),
        ([{"text": "no type"}], "no type\n[the text above is of a block of the type content]"),
        ([{"type": "text"}, {"type": "text", "text": "there"}], "there\n[text omitted: 16 bytes]"),
        (["plain"], "plain"),
        ("plain", "plain"),
        ({"type": "text", "text": "single"}, "single"),
        ([5], "[content omitted: 5]"),
        (None, "(no output)"),
        ([], "(no output)"),
    ],
)
def test_a_result_that_breaks_the_rules_is_delivered_as_far_as_it_can_be_read(content: Any, expected: str) -> None:
    assert text(content) == expected


def test_a_result_that_breaks_its_own_schema_is_delivered_with_a_note() -> None:
    schema = {"type": "object", "properties": {"port": {"type": "integer"}}, "required": ["port"]}
    broken = to_result({"content": [], "structuredContent": {"port": "x"}}, schema)
    assert broken.status == "completed"
    assert broken.text.startswith('{"port": "x"}\n[note: the result breaks the tool\'s own output schema: port: ')
    missing = to_result({"content": [{"type": "text", "text": "80"}]}, schema)
    assert missing.text == "80\n[note: the tool declares a structured result and gave none]"
    assert to_result({"content": [{"type": "text", "text": "80"}], "isError": True}, schema).text == "80"


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        ("\x1bP1;2qdata\x1b\\x\x1b7y\x1b(Bz", "xyz"),
        ("\x9b2Jx", "x"),
        ("a\x00b\x08c\x7f\x85", "a\\x00b\\x08c\\x7f\\x85"),
        ("one\r\ntwo\rthree\tfour", "one\ntwo\nthree\tfour"),
        ("\x1b", "\\x1b"),
        ("größe 🎉\u200d", "größe 🎉\u200d"),
    ],
)
def test_terminal_sequences_and_control_characters_are_made_harmless(raw: str, clean: str) -> None:
    assert harmless(raw) == clean


@pytest.mark.parametrize(
    "part",
    [
        "\x1b]",
        "\x1bP",
        "\x1bX",
        "\x1b^",
        "\x1b_",
        "\x1b]0;",
        "\x1b[",
        "\x1b[0;",
        "\x9b",
        "\x9b0 ",
        "\x1b",
        "\x1b ",
        "\x1b\x1b]",
    ],
)
@pytest.mark.parametrize("end", ["", "\x07", "\x1b\\", "\\", "\x1b"])
def test_sequences_without_an_end_take_no_longer_than_others(part: str, end: str) -> None:
    text = end + part * 300_000 + end  # hours, where each beginning is followed to the end of the text
    assert "\x1b" not in harmless(text)


def test_what_is_nested_too_deeply_to_be_written_is_noted() -> None:
    value: Any = "x"
    for _ in range(100_000):
        value = [value]
    assert text([], structuredContent=value) == "[omitted: nested too deeply]"
    assert text([{"type": "hologram", "beam": value}]).startswith("[hologram omitted")
    assert text([value]).startswith("[content omitted")
