from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hel_lsp.lsp.uris import path_to_uri, same_document_key, uri_to_path

POSIX = [
    ("/a/b.txt", "file:///a/b.txt"),
    ("/with space", "file:///with%20space"),
    ("/50%/#1?", "file:///50%25/%231%3F"),
    ("/käse/😀", "file:///k%C3%A4se/%F0%9F%98%80"),
    ("/", "file:///"),
]

WINDOWS = [
    ("C:\\a\\b.txt", "file:///C:/a/b.txt"),
    ("c:\\with space", "file:///c:/with%20space"),
    ("c:\\", "file:///c:/"),
    ("\\\\server\\share\\#1", "file://server/share/%231"),
]


@pytest.mark.parametrize(("path", "uri"), POSIX)
def test_posix_paths_there_and_back(path: str, uri: str) -> None:
    assert path_to_uri(path, windows=False) == uri
    assert uri_to_path(uri, windows=False) == path


@pytest.mark.parametrize(("path", "uri"), WINDOWS)
def test_windows_paths_there_and_back(path: str, uri: str) -> None:
    assert path_to_uri(path, windows=True) == uri
    assert uri_to_path(uri, windows=True) == path


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "vscode-remote://host/a", "http://x/a", "file", "file:", "file:a", "", "/a", "a b"]
)
def test_what_is_no_local_file_has_no_path(uri: str, windows: bool) -> None:
    assert uri_to_path(uri, windows=windows) is None


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("FILE:///a", "/a"),
        ("file:/a", "/a"),
        ("file://localhost/a", "/a"),
        ("file:///a#b?c", "/a#b?c"),
        ("file:///%2e%41", "/.A"),
        ("file://server/a", None),
    ],
)
def test_odd_spellings_on_posix(uri: str, path: str | None) -> None:
    assert uri_to_path(uri, windows=False) == path


@pytest.mark.parametrize("uri", ["file:///c%3A/a", "file:///c:/a", "FILE:/c:/a", "file://localhost/c%3a/a"])
def test_odd_spellings_on_windows(uri: str) -> None:
    assert uri_to_path(uri, windows=True) == "c:\\a"


def test_one_document_has_one_key() -> None:
    spellings = ["file:///C:/käse b", "file:///c%3A/k%C3%A4se%20b", "FILE:///c:/k%c3%a4se b", "file:/C%3a/käse%20b"]
    assert len({same_document_key(uri) for uri in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///a", "file:///A"),
        ("file:///a%20b", "file:///a%2520b"),
        ("untitled:1", "untitled:2"),
        ("untitled:a%20b", "untitled:a b"),
        ("untitled:/a", "file:///a"),
    ],
)
def test_two_documents_have_two_keys(one: str, other: str) -> None:
    assert same_document_key(one) != same_document_key(other)


@pytest.mark.skipif(os.name == "nt", reason="bytes in paths")
def test_a_path_that_is_not_utf8_survives(tmp_path: Path) -> None:
    path = os.fsdecode(b"/caf\xe9")
    assert uri_to_path(path_to_uri(path)) == path


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))), st.booleans())
def test_any_name_survives(name: str, windows: bool) -> None:
    path = "c:\\" + name.replace("/", "\\") if windows else "/" + name
    assert uri_to_path(path_to_uri(path, windows=windows), windows=windows) == path
