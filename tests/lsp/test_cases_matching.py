"""Matching and files, as they have gone wrong for users of such tools, with the bytes that are saved."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lsp.personalities import EGLOT, NEOVIM, VSCODE, Personality
from tests.lsp.turns import Call, at_work, read, replace, write


@dataclass(frozen=True)
class Exact:
    before: bytes
    search: str
    replace: str
    after: bytes


EXACT = {
    # as reported in docker/docker-agent#3929: the second of two equal lines, with its section
    "the second of two equal lines": Exact(
        b"[dev]\nlog=on\n[prod]\nlog=on\n", "[prod]\nlog=on", "[prod]\nlog=off", b"[dev]\nlog=on\n[prod]\nlog=off\n"
    ),
    # anthropics/claude-code#31863: straight quotes stay straight
    "straight quotes": Exact(b"x\n", "x", 're("[\'\\"]")', b're("[\'\\"]")\n'),
    # github/copilot-cli#3254
    "CJK and its quotes": Exact("把“甲”改\n".encode(), "“甲”", "“乙”", "把“乙”改\n".encode()),
    # earendil-works/pi#360, Gitlawb/zero#376
    "LF search in CRLF": Exact(b"a\r\nb\r\nc\r\n", "a\nb", "A\nB", b"A\r\nB\r\nc\r\n"),
    # stevencohn/OneMore#562, thierryc/Sketch-Find-And-Replace#75
    "nothing is a pattern": Exact(b"f(x)[0].*+?^$|\n", "f(x)[0].*+?^$|", r"$& \1 \g<0> &", b"$& \\1 \\g<0> &\n"),
    # openclaw/openclaw#14452: a backslash and an n are a backslash and an n
    "a literal backslash n": Exact(b"a\nb\n", "a\nb", "a\\nb", b"a\\nb\n"),
    # zed-industries/zed#52661
    "a search with its line end": Exact(b"a\nb\n", "a\n", "A\n", b"A\nb\n"),
    # codestoryai/sidecar#2014
    "the final newline": Exact(b"a\n", "a", "b", b"b\n"),
    "no final newline": Exact(b"a", "a", "b", b"b"),
    "no final newline, CRLF": Exact(b"x\r\na", "a", "b\nc", b"x\r\nb\r\nc"),
    # neovim/neovim#40133: a line after the last one
    "after the last line": Exact(b"a\n", "a\n", "a\nb\n", b"a\nb\n"),
    "the last line": Exact(b"a\nb\n", "b\n", "", b"a\n"),
    "everything": Exact(b"a\nb\n", "a\nb\n", "c\n", b"c\n"),
    # esengine/DeepSeek-Reasonix#6488
    "CJK beside it": Exact("中文 a\n".encode(), "a", "b", "中文 b\n".encode()),
    # the byte order mark is nobody's first character
    "BOM": Exact(b"\xef\xbb\xbfa\nb\n", "a", "A", b"\xef\xbb\xbfA\nb\n"),
    "BOM and CRLF": Exact(b"\xef\xbb\xbfa\r\nb\r\n", "a\nb", "A\nn\nB", b"\xef\xbb\xbfA\r\nn\r\nB\r\n"),
    # NousResearch/hermes-agent#45393, fortran-lang/fortls#443: what ends no line
    "what ends no line": Exact("a\fb\vc\x85d\u2028e\nf\n".encode(), "f", "F", "a\fb\vc\x85d\u2028e\nF\n".encode()),
    # openlawlibrary/pygls#302, astral-sh/ruff-lsp#358, oraios/serena#2064: columns behind emoji
    "emoji in front": Exact("😀😀 x\n".encode(), "x", "y", "😀😀 y\n".encode()),
    "combining marks": Exact("e\u0301 x e\u0301\n".encode(), "x", "e\u0301", "e\u0301 e\u0301 e\u0301\n".encode()),
    # openlawlibrary/pygls#564
    "multibyte, inserted": Exact("öbc\n".encode(), "öbc", "öabc", "öabc\n".encode()),
    # openlawlibrary/pygls#550, #534: the end of a text without a line end
    "at the end of the text": Exact(b"abc", "abc", "abcdef", b"abcdef"),
}

several = pytest.mark.parametrize("personality", [VSCODE, NEOVIM, EGLOT], ids=["utf-16", "utf-8", "utf-32"])


@several
@pytest.mark.parametrize("opened", [True, False], ids=["open", "not open"])
async def test_the_bytes_that_are_saved_are_those_that_were_meant_and_undo_gives_the_first_ones(
    personality: Personality, opened: bool, tmp_path: Path
) -> None:
    async with at_work(tmp_path, personality) as work:
        for number, (name, case) in enumerate(EXACT.items()):
            path = work.file(f"{number}.txt", case.before)
            if opened:
                work.editor.open(path)
            turn = await work.turn(replace(path.name, case.search, case.replace))
            assert turn.statuses == ["completed"], (name, turn.told)
            assert path.read_bytes() == case.before, name
            assert turn.unsaved == [path.as_uri()], name
            expected = case.after
            if personality is NEOVIM and not expected.endswith(b"\n"):
                expected += b"\r\n" if b"\r\n" in expected else b"\n"  # 'fixendofline', which is the user's
            assert work.saved(path) == expected, name
            await work.editor.command("hel.undo")
            assert work.editor.buffer(path).text.encode() in (
                case.before.removeprefix(b"\xef\xbb\xbf"),
                case.before.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n"),
            ), name


@dataclass(frozen=True)
class Refused:
    before: bytes
    call: Call
    said: list[str]


REFUSED = {
    # Aider-AI/aider#827
    "already applied": Refused(b"pub struct S {}\n", replace("f", "struct S", "pub struct S"), ["Already applied"]),
    # bytedance/deer-flow#2550
    "twice there": Refused(b"x=1\ny=1\n", replace("f", "1", "2"), ["2 times", "lines 1, 2"]),
    "overlapping": Refused(b"aaa\n", replace("f", "aa", "b"), ["2 times"]),
    # NousResearch/hermes-agent#54572
    "nearly there": Refused(b"q(2)\n", replace("f", "q(9)", "q(0)"), ["not found", "q(2)"]),
    # patchloom/patchloom#1694
    "misspelt": Refused(b"rate_limt = 5\n", replace("f", "rate_limit", "cap"), ["not found"]),
    # anomalyco/opencode#23517, langchain-ai/deepagents#5589
    "nothing to search for": Refused(b"keep\n", replace("f", "", "add\n"), ["must not be empty"]),
    # anthropics/claude-code#26996, #40471, #9163
    "blanks for a tab": Refused(b"\tif x:\n", replace("f", "    if x:", "y"), ["TAB", "line 1"]),
    # anthropics/claude-code#29869
    "a space for NBSP": Refused("a\u00a0b\n".encode(), replace("f", "a b", "a c"), ["U+00A0", "column 2"]),
    # Zoo-Code-Org/Zoo-Code#716, xal-sh/xal#42
    "a line number": Refused(b"foo()\n", replace("f", "  12 | foo()", "bar()"), ["line-number prefix"]),
    # openclaw/openclaw#14452
    "escaped twice": Refused(b"a\nb\n", replace("f", "a\\nb", "c"), ["unescaped"]),
    # MoonshotAI/kimi-cli#2452
    "no change": Refused(b"a\n", replace("f", "a", "a"), ["No change"]),
    "NUL": Refused(b"a\n", replace("f", "a", "b\0"), ["NUL"]),
    "half a pair": Refused(b"a\n", replace("f", "a", "b\ud800"), ["surrogate"]),
    "the whole file as it is": Refused(b"a\n", write("f", "a\n"), ["No change"]),
}


@pytest.mark.parametrize("opened", [True, False], ids=["open", "not open"])
async def test_what_does_not_fit_exactly_once_changes_nothing_asks_nothing_and_says_why(
    opened: bool, tmp_path: Path
) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        for number, (name, case) in enumerate(REFUSED.items()):
            path = work.file(f"{number}.txt", case.before)
            if opened:
                work.editor.open(path)
            made = {**case.call, "arguments": {**case.call["arguments"], "path": path.name}}
            turn = await work.turn(made)
            assert turn.statuses == ["failed"], name
            for words in case.said:
                assert words in turn.told[0], (name, turn.told[0])
            assert path.read_bytes() == case.before, name
        assert work.editor.sent("workspace/applyEdit") == []
        assert work.editor.questions == []
        assert all(not buffer.dirty for buffer in work.editor.buffers.values())


# -------------------------------------------------------------------- several calls in one reply


async def test_of_several_calls_in_one_reply_each_has_its_own_result(tmp_path: Path) -> None:
    # as reported in Aider-AI/aider#1329
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"1\n2\n3\n")
        turn = await work.turn([replace("a.txt", "1", "one"), replace("a.txt", "x", "y"), replace("a.txt", "3", "end")])
        assert turn.statuses == ["completed", "failed", "completed"]
        assert ["Applied" in told for told in turn.told] == [True, False, True]
        assert work.saved(buffer) == b"one\n2\nend\n"
        assert len(buffer.undo) == 2


@several
async def test_calls_on_one_line_are_each_matched_on_the_result_of_the_one_before(
    personality: Personality, tmp_path: Path
) -> None:
    # as reported in moonbitlang/openseek#263, ollama/ollama#17711
    async with at_work(tmp_path, personality) as work:
        buffer = work.open("a.rs", b"if l<r {l} else {r}\n")
        turn = await work.turn(
            [replace("a.rs", "l<r", "a<b"), replace("a.rs", "{l}", "{a}"), replace("a.rs", "{r}", "{b}")]
        )
        assert turn.statuses == ["completed"] * 3
        assert work.saved(buffer) == b"if a<b {a} else {b}\n"


async def test_the_same_call_twice_in_one_reply_is_applied_once(tmp_path: Path) -> None:
    # as reported in can1357/oh-my-pi#4458
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\n")
        turn = await work.turn([replace("a.txt", "a\n", "b\n"), replace("a.txt", "a\n", "b\n")])
        assert turn.statuses == ["completed", "failed"]
        assert "already applied" in turn.told[1]
        assert work.saved(buffer) == b"b\n"


# -------------------------------------------------------------------- which file, and what is in it


REFUSED_FILES = {
    # anthropics/claude-code#85842, anthropics/anthropic-sdk-typescript#1195,
    # Digital-Process-Tools/claude-supertool#1059
    "latin-1": ("f.txt", b"caf\xe9\nx\n", ["not UTF-8", "0xE9", "ditor"]),
    # BaseIntelligence/bounty-challenge#11203
    "UTF-16": ("f.txt", b"\xff\xfex\x00\n\x00", ["UTF-16", "ditor"]),
    "UTF-16 without a mark": ("f.txt", "ax\n".encode("utf-16-le"), ["UTF-16"]),
    "binary": ("f.txt", b"abc\0def", ["NUL"]),
    # RooCodeInc/Roo-Code#4956
    "a notebook": ("n.ipynb", b'{"cells": [], "x": 1}\n', ["notebook"]),
}


async def test_a_file_that_is_not_open_and_no_utf8_text_is_refused_and_keeps_its_bytes(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        for number, (kind, (name, content, said)) in enumerate(REFUSED_FILES.items()):
            path = work.file(f"{number}/{name}", content)
            turn = await work.turn([replace(f"{number}/{name}", "x", "y"), write(f"{number}/{name}", "y\n")])
            assert turn.statuses == ["failed", "failed"], kind
            for words in said:
                assert words in turn.told[0], (kind, turn.told[0])
            assert path.read_bytes() == content, kind
        assert work.editor.sent("workspace/applyEdit") == []


@pytest.mark.parametrize("edits", [True, False], ids=["through the editor", "an editor that takes no edits"])
async def test_a_new_notebook_is_refused_and_nobody_is_asked(edits: bool, tmp_path: Path) -> None:
    async with at_work(tmp_path, VSCODE if edits else without_edits(), access="confirm") as work:
        (work.folder / "link").symlink_to("linked.ipynb")
        calls = [write("new/n.ipynb", "{}\n"), replace("N.IPYNB", "", "{}\n"), write("link", "{}\n")]
        turn = await work.turn(calls)
        assert turn.statuses == ["failed"] * 3
        assert all("is a notebook" in told for told in turn.told), turn.told
        assert work.editor.questions == []
        assert work.editor.sent("workspace/applyEdit") == []
        assert [entry.name for entry in work.folder.iterdir()] == ["link"]


async def test_a_latin_1_file_that_the_editor_has_open_is_the_editors_to_encode(tmp_path: Path) -> None:
    # as reported in anthropics/claude-code#85842: the editor knows the encoding
    async with at_work(tmp_path) as work:
        path = work.file("a.txt", b"caf\xe9\nx\n")
        buffer = work.editor.open_untitled(path.as_uri(), "café\nx\n")
        buffer.path = path
        turn = await work.turn(replace("a.txt", "x", "é"))
        assert turn.statuses == ["completed"]
        assert buffer.text == "café\né\n"
        assert path.read_bytes() == b"caf\xe9\nx\n"


@pytest.mark.parametrize("edits", [True, False], ids=["through the editor", "an editor that takes no edits"])
async def test_the_mode_of_a_script_stays(edits: bool, tmp_path: Path) -> None:
    # as reported in OpenHands/OpenHands#4254, zai-org/feedback#87, anthropics/claude-code#20356
    personality = VSCODE if edits else without_edits()
    async with at_work(tmp_path, personality) as work:
        path = work.file("run.sh", b"\xef\xbb\xbfecho one\r\n")
        path.chmod(0o755)
        inode = path.stat().st_ino
        turn = await work.turn(replace("run.sh", "one", "two\nthree"))
        assert turn.edits[0]["applied"]
        if edits:
            work.saved(path)
        assert path.read_bytes() == b"\xef\xbb\xbfecho two\r\nthree\r\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o755
        assert path.stat().st_ino == inode
        assert [entry.name for entry in work.folder.iterdir()] == ["run.sh"]


async def test_a_link_that_leads_out_is_refused_for_reads_and_writes(tmp_path: Path) -> None:
    # as reported in anomalyco/opencode#43336, nextlevelbuilder/goclaw#1201
    async with at_work(tmp_path) as work:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "f").write_bytes(b"x\n")
        (work.folder / "out").symlink_to(outside)
        (work.folder / "file").symlink_to(outside / "f")
        (work.folder / "new").symlink_to(outside / "none")
        calls = [replace("out/f", "x", "y"), replace("file", "x", "y"), read("out/f"), read("file")]
        calls += [write("new", "x\n"), replace("new", "", "x\n"), write("out/g", "x\n"), read("../outside/f")]
        calls += [replace(outside / "f", "x", "y"), replace("../outside/f", "x", "y")]
        turn = await work.turn(calls)
        assert turn.statuses == ["failed"] * len(calls)
        assert all("out of the workspace" in told for told in turn.told)
        assert (outside / "f").read_bytes() == b"x\n"
        assert [entry.name for entry in outside.iterdir()] == ["f"]
        assert work.editor.sent("workspace/applyEdit") == []


@pytest.mark.parametrize("through", ["link", "target"])
async def test_a_file_that_is_open_through_a_link_is_one_document_whatever_it_is_called(
    through: str, tmp_path: Path
) -> None:
    async with at_work(tmp_path) as work:
        path = work.file("real dir/ä#1.txt", b"one\n")
        (work.folder / "link").symlink_to("real dir", target_is_directory=True)
        link = work.folder / "link" / path.name
        opened = work.editor.open(link if through == "link" else path)
        work.editor.type(opened, "two\n")
        names = ("link/ä#1.txt", "real dir/ä#1.txt", str(path), str(link))
        for number, name in enumerate(names):
            turn = await work.turn([read(name), replace(name, "one" if not number else f"v{number - 1}", f"v{number}")])
            assert turn.statuses == ["completed", "completed"]
            assert "two" in turn.told[0]
            [edit] = turn.edits
            assert edit["uri"] == opened.uri
        assert opened.text == "v3\ntwo\n"
        assert work.saved(opened) == b"v3\ntwo\n"
        assert (work.folder / "link").is_symlink()
        sent = work.editor.sent("workspace/applyEdit")
        assert {change["textDocument"]["uri"] for one in sent for change in one["edit"]["documentChanges"]} == {
            opened.uri
        }


@pytest.mark.parametrize("personality", [VSCODE, NEOVIM], ids=["Code", "Neovim"])
async def test_an_empty_search_creates_a_file_only_where_there_is_none(
    personality: Personality, tmp_path: Path
) -> None:
    # as reported in anomalyco/opencode#24913
    async with at_work(tmp_path, personality) as work:
        turn = await work.turn([replace("new/dir/f.py", "", "x\n"), replace("new/dir/f.py", "", "y\n")])
        assert turn.statuses == ["completed", "failed"]
        path = work.folder / "new" / "dir" / "f.py"
        assert turn.unsaved == [path.as_uri()]
        assert work.saved(path) == b"x\n"


def without_edits() -> Personality:
    """An editor that shows documents and takes no edits."""
    capabilities = {"general": {}, "workspace": {"configuration": True}, "window": {}}
    return Personality("plain", capabilities)
