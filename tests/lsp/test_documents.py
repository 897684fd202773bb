"""The server's copy of what the editor has open."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hel_lsp.lsp.documents import Documents
from hel_lsp.lsp.uris import path_to_uri


def item(uri: str, text: str = "", version: Any = 1) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "languageId": "ini", "version": version, "text": text}}


def change(uri: str, *texts: str, version: Any = 2) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text} for text in texts]}


def position(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def ranged(uri: str, text: str, start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    span = {"start": position(*start), "end": position(*end)}
    return {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"range": span, "text": text}]}


def named(uri: str) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}}


def text_of(documents: Documents, where: str | Path) -> str | None:
    document = documents.find(where)
    return document.text if document else None


def test_a_document_is_what_the_editor_sent_until_it_is_closed() -> None:
    documents = Documents()
    documents.opened(item("untitled:1", "a\r\nb\rc\f\n\ufeff", version=3))
    document = documents.find("untitled:1")
    assert document is not None
    assert (document.text, document.version, document.language_id) == ("a\r\nb\rc\f\n\ufeff", 3, "ini")
    assert (document.uri, document.path) == ("untitled:1", None)
    documents.changed(change("untitled:1", "x", "y", version=4))
    assert (document.text, document.version) == ("y", 4)
    documents.closed(named("untitled:1"))
    assert documents.find("untitled:1") is None


def test_any_spelling_of_the_uri_and_any_way_to_the_file_find_the_document(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "a b#.ini"
    path.write_text("disk")
    link = tmp_path / "link.ini"
    link.symlink_to(path)
    folder = tmp_path / "folder"
    folder.symlink_to(tmp_path / "sub")
    documents = Documents()
    uri = path_to_uri(path).replace("%20", " ").replace("%23", "%23")
    documents.opened(item(uri, "buffer"))
    for where in (
        uri,
        path_to_uri(path),
        path_to_uri(link),
        path,
        link,
        folder / path.name,
        tmp_path / "sub/../link.ini",
    ):
        assert text_of(documents, where) == "buffer"
    document = documents.find(path)
    assert document is not None
    assert document.uri == uri
    assert document.path == path.resolve()


def test_a_document_that_was_opened_through_a_symlink_is_found_by_its_target(tmp_path: Path) -> None:
    path, link = tmp_path / "real.ini", tmp_path / "link.ini"
    path.write_text("disk")
    link.symlink_to(path)
    documents = Documents()
    documents.opened(item(path_to_uri(link), "buffer"))
    assert text_of(documents, path) == "buffer"
    document = documents.find(path_to_uri(path))
    assert document is not None
    assert document.uri == path_to_uri(link)


def test_of_two_buffers_of_one_file_the_one_touched_last_counts(tmp_path: Path) -> None:
    path, link = tmp_path / "real.ini", tmp_path / "link.ini"
    path.write_text("disk")
    link.symlink_to(path)
    documents = Documents()
    documents.opened(item(path_to_uri(path), "one"))
    documents.opened(item(path_to_uri(link), "two"))
    assert text_of(documents, path.resolve()) == "two"
    documents.changed(change(path_to_uri(path), "newer"))
    assert text_of(documents, path.resolve()) == "newer"
    assert text_of(documents, path_to_uri(link)) == "two"


def test_the_case_of_a_drive_letter_does_not_matter() -> None:
    documents = Documents()
    documents.opened(item("file:///C:/a.ini", "old"))
    documents.changed(change("file:///c%3A/a.ini", "new"))
    assert [(document.uri, document.text) for document in documents] == [("file:///C:/a.ini", "new")]


def test_names_that_only_differ_in_case_are_two_files_where_the_file_system_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    one_file = (tmp_path / "A").exists()
    documents = Documents()
    documents.opened(item(path_to_uri(tmp_path / "a"), "buffer"))
    assert (documents.find(tmp_path / "A") is not None) == one_file
    if not one_file:
        # A second name for the same file, as on a file system that ignores case.
        os.link(tmp_path / "a", tmp_path / "A")
        assert text_of(documents, tmp_path / "A") == "buffer"


def test_changes_of_documents_that_are_not_open_are_ignored(tmp_path: Path) -> None:
    path, link = tmp_path / "real.ini", tmp_path / "link.ini"
    path.write_text("disk")
    link.symlink_to(path)
    documents = Documents()
    documents.changed(change("file:///nowhere", "x"))
    documents.opened(item(path_to_uri(path), "one"))
    documents.opened(item(path_to_uri(link), "two"))
    documents.closed(named(path_to_uri(link)))
    documents.changed(change(path_to_uri(link), "three"))
    documents.closed(named(path_to_uri(link)))
    assert [document.text for document in documents] == ["one"]


def test_opening_twice_takes_the_newer_text() -> None:
    documents = Documents()
    documents.opened(item("untitled:1", "one"))
    documents.opened(item("untitled:1", "two", version=7))
    assert [(document.text, document.version) for document in documents] == [("two", 7)]


@pytest.mark.parametrize("version", ["null", "NaN", '"3"', "true", "1e400", "[]"])
def test_a_version_that_is_no_number_costs_the_version_alone(version: str) -> None:
    documents = Documents()
    documents.opened(item("untitled:1", "one", json.loads(version)))
    documents.changed(change("untitled:1", "two", version=json.loads(version)))
    assert [(document.text, document.version) for document in documents] == [("two", None)]


def test_a_version_may_be_0_or_written_as_a_decimal() -> None:
    documents = Documents()
    documents.opened(item("untitled:1", "one", 0))
    assert [document.version for document in documents] == [0]
    documents.changed(change("untitled:1", "two", version=3.0))
    assert [document.version for document in documents] == [3]


@pytest.mark.parametrize(
    "params",
    [
        None,
        5,
        [],
        {},
        {"textDocument": None},
        {"textDocument": {"uri": 5, "text": "x"}},
        {"textDocument": {"uri": "untitled:1"}},
        {"textDocument": {"uri": "untitled:1"}, "contentChanges": "x"},
        {"textDocument": {"uri": "untitled:1"}, "contentChanges": [5, {}, {"text": 5}, {"text": "x", "range": 5}]},
        {"textDocument": {"uri": "untitled:1"}, "contentChanges": [{"text": "x", "range": {"start": {"line": "a"}}}]},
        {"textDocument": {"uri": "file:///a%00b", "text": "x"}},
    ],
)
def test_malformed_notifications_change_nothing(params: Any) -> None:
    documents = Documents()
    documents.opened(item("untitled:1", "kept"))
    documents.changed(params)
    documents.saved(None)
    documents.closed({"textDocument": {}})
    if params != {"textDocument": {"uri": "file:///a%00b", "text": "x"}}:
        documents.opened(params)
    assert text_of(documents, "untitled:1") == "kept"


# -------------------------------------------------------------------- clients that send ranges all the same


@pytest.mark.parametrize(
    ("encoding", "text", "start", "end", "new", "result"),
    [
        ("utf-8", "öbc", (0, 2), (0, 2), "a", "öabc"),
        ("utf-16", "😀x\n", (0, 2), (0, 3), "y", "😀y\n"),
        ("utf-32", "😀x\n", (0, 1), (0, 2), "y", "😀y\n"),
        ("utf-16", "a\fb\u2028c\x85d\nc\n", (1, 0), (1, 1), "d", "a\fb\u2028c\x85d\nd\n"),
        ("utf-16", "a\rb\r\nc", (2, 0), (2, 1), "d", "a\rb\r\nd"),
        ("utf-16", "abc", (0, 3), (0, 3), "d", "abcd"),
        ("utf-16", "", (0, 0), (0, 0), "d", "d"),
        ("utf-16", "a\n", (1, 0), (1, 0), "b", "a\nb"),
        ("utf-16", "a\nb", (9, 0), (9, 9), "c", "a\nbc"),
        ("utf-16", "ab\ncd\n", (0, 99), (1, 0), "", "abcd\n"),
    ],
)
def test_a_ranged_change_is_applied_where_the_protocol_says(
    encoding: Any, text: str, start: tuple[int, int], end: tuple[int, int], new: str, result: str
) -> None:
    documents = Documents()
    documents.encoding = encoding
    documents.opened(item("untitled:1", text))
    documents.changed(ranged("untitled:1", new, start, end))
    assert text_of(documents, "untitled:1") == result


# -------------------------------------------------------------------- saved or not


def unsaved(documents: Documents) -> list[str]:
    return [document.text for document in documents.unsaved()]


def test_a_document_is_unsaved_from_its_first_change_to_the_next_save(tmp_path: Path) -> None:
    path = tmp_path / "a.ini"
    path.write_bytes(b"\xef\xbb\xbfport=7000\r\n")
    documents, uri = Documents(), path_to_uri(path)
    documents.opened(item(uri, "port=7000\n"))
    assert unsaved(documents) == []
    documents.changed(change(uri, "port=8437\n"))
    assert unsaved(documents) == ["port=8437\n"]
    path.write_bytes(b"\xef\xbb\xbfport=8437\r\n")
    documents.saved(named(uri))
    assert unsaved(documents) == []


@pytest.mark.parametrize("disk", [b"a\r\nb\n", b"a\nb\n", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb\r\n"])
@pytest.mark.parametrize("text", ["a\r\nb\r\n", "a\nb\n", "\ufeffa\r\nb\r\n"])
def test_line_endings_that_the_editor_has_made_alike_are_no_unsaved_change(
    disk: bytes, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.ini"
    path.write_bytes(disk)
    documents = Documents()
    documents.opened(item(path_to_uri(path), text))
    assert unsaved(documents) == []


def test_a_change_that_is_taken_back_is_no_unsaved_change(tmp_path: Path) -> None:
    path = tmp_path / "a.ini"
    path.write_text("port=7000\n")
    documents, uri = Documents(), path_to_uri(path)
    documents.opened(item(uri, "port=7000\n"))
    documents.changed(change(uri, "port=8437\n"))
    documents.changed(change(uri, "port=7000\n"))
    assert unsaved(documents) == []


def test_a_document_may_be_opened_with_unsaved_text(tmp_path: Path) -> None:
    path = tmp_path / "a.ini"
    path.write_text("port=7000\n")
    documents = Documents()
    documents.opened(item(path_to_uri(path), "port=8437\n"))
    documents.opened(item(path_to_uri(tmp_path / "new.ini"), ""))
    documents.opened(item("untitled:1", "notes"))
    documents.opened(item("untitled:2", ""))
    assert unsaved(documents) == ["port=8437\n", "", "notes"]


def test_a_file_in_another_encoding_counts_as_saved_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.ini"
    path.write_bytes(b"caf\xe9\n")
    documents, uri = Documents(), path_to_uri(path)
    documents.opened(item(uri, "café\n"))
    assert unsaved(documents) == []
    documents.changed(change(uri, "cafés\n"))
    assert unsaved(documents) == ["cafés\n"]
    documents.saved(named(uri))
    assert unsaved(documents) == []


# -------------------------------------------------------------------- waiting for a text


async def test_a_wait_ends_when_the_text_is_there() -> None:
    documents = Documents()
    documents.opened(item("untitled:1", "a"))
    assert await documents.wait_changed("untitled:1", lambda text: text == "a", 0)
    waiting = asyncio.create_task(documents.wait_changed("untitled:1", lambda text: text == "c", 5))
    await asyncio.sleep(0)
    documents.changed(change("untitled:1", "b"))
    await asyncio.sleep(0)
    assert not waiting.done()
    documents.changed(change("untitled:1", "c"))
    # Later changes do not take back what has been seen.
    documents.changed(change("untitled:1", "d"))
    assert await waiting


async def test_a_wait_covers_a_document_that_is_opened_later_under_another_name(tmp_path: Path) -> None:
    path, link = tmp_path / "real.ini", tmp_path / "link.ini"
    path.write_text("")
    link.symlink_to(path)
    documents = Documents()
    waiting = asyncio.create_task(documents.wait_changed(path, lambda text: text == "c", 5))
    await asyncio.sleep(0)
    documents.opened(item("untitled:1", "c"))
    await asyncio.sleep(0)
    assert not waiting.done()
    documents.opened(item(path_to_uri(link), "c"))
    assert await waiting


async def test_a_wait_that_is_in_vain_ends_in_time_and_leaves_nothing() -> None:
    documents = Documents()
    documents.opened(item("untitled:1", "a"))
    assert not await documents.wait_changed("untitled:1", lambda text: text == "b", 0.01)
    assert not documents._waiters
