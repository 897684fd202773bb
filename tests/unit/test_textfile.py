"""Files on the disk: nothing is read that would lose a byte, nothing is written that was not asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hel_lsp import textfile
from hel_lsp.errors import FileRefused, StaleDocument
from hel_lsp.textfile import TextFile

posix = pytest.mark.skipif(os.name == "nt", reason="modes, links and pipes of POSIX")
not_root = pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not hold for root")


def file_with(folder: Path, content: bytes, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def others(path: Path) -> list[str]:
    """What else lies in the folder: copies that should be gone."""
    return [entry.name for entry in path.parent.iterdir() if entry != path]


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", TextFile("")),
        (b"a\r\nb\rc\n", TextFile("a\r\nb\rc\n")),
        (b"\xef\xbb\xbfa\n", TextFile("a\n", bom=True)),
        (b"\xef\xbb\xbf\xef\xbb\xbfa", TextFile("\ufeffa", bom=True)),
        ("中文 😀\f\u2028\x85".encode(), TextFile("中文 😀\f\u2028\x85")),
    ],
)
def test_a_text_is_read_as_it_is(tmp_path: Path, content: bytes, expected: TextFile) -> None:
    file = textfile.read(file_with(tmp_path, content))
    assert file == expected
    assert file.encoded() == content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"caf\xe9\nx\n", "not UTF-8: byte 0xE9 at offset 3 (line 1). Open it in the editor"),
        (b"a\r\n\xff\r\n", "not UTF-8: byte 0xFF at offset 3 (line 2)"),
        (b"\xef\xbb\xbfok\n\xc3(", "byte 0xC3 at offset 6 (line 2)"),
        (b"\xed\xa0\xbd", "not UTF-8"),
        (b"\xff\xfea\0\n\0", "is UTF-16, not UTF-8. Open it in the editor"),
        (b"\xfe\xff\0a\0\n", "is UTF-16"),
        (b"\xff\xfe\0\0a\0\0\0", "is UTF-32"),
        (b"\0\0\xfe\xff\0\0\0a", "is UTF-32"),
        ("some text\n".encode("utf-16-le"), "looks like UTF-16 without a byte order mark. Open it in the editor"),
        ("some text\n".encode("utf-16-be"), "looks like UTF-16"),
        (b"a\0b", "not a text file: it has a NUL byte at offset 1"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0", "not a text file"),
    ],
)
def test_what_is_not_strict_utf8_text_is_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    path = file_with(tmp_path, content)
    with pytest.raises(FileRefused) as caught:
        textfile.read(path)
    assert reason in caught.value.message
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["n.ipynb", "N.IPYNB"])
def test_a_notebook_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileRefused, match="is a notebook"):
        textfile.read(file_with(tmp_path, b'{"cells": []}', name))
    with pytest.raises(FileRefused, match="is a notebook"):
        textfile.create(tmp_path / f"new-{name}", "{}")
    assert others(tmp_path / name) == []


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match="is a folder"):
        textfile.read(tmp_path)
    with pytest.raises(FileRefused, match="does not exist"):
        textfile.read(tmp_path / "none")


@posix
def test_a_pipe_or_device_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(FileRefused, match="not a regular file"):
            textfile.read(path)


def test_a_file_of_unreasonable_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.truncate(textfile.MOST_BYTES + 1)
    with pytest.raises(FileRefused, match="64 are not read"):
        textfile.read(path)


@given(st.binary(max_size=40))
def test_whatever_can_be_read_is_written_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = file_with(tmp_path_factory.getbasetemp(), content, "bytes")
    try:
        file = textfile.read(path)
    except FileRefused:
        return
    assert file.encoded() == content


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize(
    ("content", "text", "expected"),
    [
        (b"a\r\nb", "a\r\nB and more\r\n", b"a\r\nB and more\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"long text\n", "x", b"x"),
        (b"a\n", "", b""),
        (b"", "中", "中".encode()),
    ],
)
def test_a_text_is_written_with_its_mark_and_line_ends(
    tmp_path: Path, content: bytes, text: str, expected: bytes
) -> None:
    path = file_with(tmp_path, content)
    before = textfile.read(path)
    after = textfile.write(path, before, text)
    assert path.read_bytes() == expected
    assert after == textfile.read(path) == TextFile(text, before.bom)
    assert others(path) == []


@posix
def test_inode_mode_and_links_stay(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"#!/bin/sh\necho a\n", "script")
    path.chmod(0o755)
    (tmp_path / "hard").hardlink_to(path)
    (tmp_path / "soft").symlink_to(path)
    before = path.stat()
    textfile.write(tmp_path / "soft", textfile.read(tmp_path / "soft"), "#!/bin/sh\necho b\n")
    after = path.stat()
    assert (after.st_ino, after.st_mode, after.st_nlink) == (before.st_ino, before.st_mode, 2)
    assert (tmp_path / "soft").is_symlink()
    assert (tmp_path / "hard").read_bytes() == b"#!/bin/sh\necho b\n"


def test_a_file_that_changed_since_it_was_read_is_not_written(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"a\n")
    before = textfile.read(path)
    times = path.stat()
    path.write_bytes(b"b\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(StaleDocument, match="changed on the disk since it was read"):
        textfile.write(path, before, "c\n")
    assert path.read_bytes() == b"b\n"
    path.unlink()
    with pytest.raises(StaleDocument, match="deleted"):
        textfile.write(path, before, "c\n")
    assert others(path) == []


def test_text_that_cannot_be_encoded_changes_nothing(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"a\n")
    with pytest.raises(FileRefused, match=r"U\+D83D"):
        textfile.write(path, textfile.read(path), "\ud83d")
    with pytest.raises(FileRefused, match=r"U\+D83D"):
        textfile.create(tmp_path / "new", "\ud83d")
    assert path.read_bytes() == b"a\n"
    assert others(path) == []


LIMITED = """
import resource, sys
from pathlib import Path
from hel_lsp import textfile
from hel_lsp.errors import FileRefused
path, limit = Path(sys.argv[1]), int(sys.argv[2])
before = textfile.read(path) if path.exists() else None
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    if before is None:
        textfile.create(path, "n" * 200_000)
    else:
        textfile.write(path, before, "n" * 200_000)
except FileRefused as error:
    print(error)
"""


@posix
@pytest.mark.parametrize("limit", [100_000, 120_000, 50_000])
def test_where_the_file_cannot_grow_it_holds_what_it_held(tmp_path: Path, limit: int) -> None:
    """A limit on the size of files fails in the middle of a write as a full disk does."""
    path = file_with(tmp_path, b"o" * 100_000)
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(limit)], capture_output=True, text=True, check=True
    )
    assert "file.txt: File too large" in run.stdout
    assert path.read_bytes() == b"o" * 100_000
    assert others(path) == []


@posix
def test_a_file_that_cannot_be_written_whole_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    run = subprocess.run([sys.executable, "-c", LIMITED, str(path), "4096"], capture_output=True, text=True, check=True)
    assert "File too large" in run.stdout
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from hel_lsp import textfile
path = Path(sys.argv[1])
before = textfile.read(path)
# The process dies at its second sync: the copy is on the disk, the file half written.
syncs = iter([lambda handle: None, lambda handle: os.kill(os.getpid(), signal.SIGKILL)])
os.fsync = lambda handle: next(syncs)(handle)
textfile.write(path, before, "new" * 1_000)
"""


@posix
def test_a_crash_in_the_middle_leaves_what_the_file_held_beside_it(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"\xef\xbb\xbfold\r\n" * 500)
    held = path.read_bytes()
    run = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, check=False)
    assert run.returncode == -9
    (copy,) = others(path)
    assert copy.startswith(".file.txt.")
    assert (tmp_path / copy).read_bytes() == held


ENDED = """
import resource, signal, sys
from pathlib import Path
from hel_lsp import textfile
path = Path(sys.argv[1])
before = textfile.read(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
textfile.write(path, before, "n" * 200_000)
"""


@posix
def test_what_needs_room_is_written_before_anything_is_overwritten(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"o" * 100_000)
    run = subprocess.run([sys.executable, "-c", ENDED, str(path)], capture_output=True, check=False)
    assert run.returncode < 0
    assert path.read_bytes()[:100_000] == b"o" * 100_000
    assert len(others(path)) == 1


@not_root
def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"a\n")
    path.chmod(0o444)
    with pytest.raises(FileRefused, match="Permission denied"):
        textfile.write(path, textfile.read(path), "b\n")


@not_root
def test_a_file_in_a_folder_that_may_not_be_written_is_written(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"a\n")
    tmp_path.chmod(0o555)
    try:
        textfile.write(path, textfile.read(path), "b\n")
    finally:
        tmp_path.chmod(0o755)
    assert path.read_bytes() == b"b\n"


def test_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"a\n", "n" * 200 + ".txt")
    textfile.write(path, textfile.read(path), "b\n")
    assert path.read_bytes() == b"b\n"


# ------------------------------------------------------------------ creating


def test_a_file_is_created_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "new" / "dir" / "f.py"
    textfile.create(path, "x\r\n")
    assert path.read_bytes() == b"x\r\n"


def test_nothing_that_is_there_is_created_over(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"a\n")
    with pytest.raises(FileRefused, match="something by that name already"):
        textfile.create(path, "b\n")
    with pytest.raises(FileRefused, match="folder of below cannot be made"):
        textfile.create(path / "below", "b\n")
    assert path.read_bytes() == b"a\n"


@posix
def test_no_file_is_created_through_a_dangling_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileRefused, match="something by that name already"):
        textfile.create(tmp_path / "link", "x")
    assert not (tmp_path / "elsewhere").exists()
