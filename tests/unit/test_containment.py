"""Where a path that a model wrote may lead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hel_lsp.containment import open_to_tools, resolve, windows_oddity
from hel_lsp.errors import PathRefused

links = pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
BOTH = pytest.mark.parametrize("writing", [False, True])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "ws"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "f.py").write_text("x\n")
    (folder / ".hel" / "skills").mkdir(parents=True)
    (folder / ".hel" / "mcp.json").write_text("{}")
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "config").write_text("")
    outside = tmp_path.resolve() / "outside"
    outside.mkdir()
    (outside / "f").write_text("secret\n")
    return folder


def refused(path: str, root: Path, *, writing: bool = False) -> str:
    with pytest.raises(PathRefused) as caught:
        resolve(path, [root], writing=writing)
    return caught.value.message


# ------------------------------------------------------------------ inside and outside


@BOTH
@pytest.mark.parametrize(
    "path", ["src/f.py", "./src/../src/f.py", "src//f.py", "{root}/src/f.py", "{root}/src/../src/f.py"]
)
def test_a_path_inside_is_the_real_one(root: Path, path: str, writing: bool) -> None:
    assert resolve(path.format(root=root), [root], writing=writing) == root / "src" / "f.py"


@BOTH
@pytest.mark.parametrize(
    "path", ["new.py", "new/dir/f.py", "~/f.py", "$HOME/f.py", ".hello", ".github/x", ".gitignore", "x.git/y"]
)
def test_a_path_need_not_exist_and_is_taken_literally(root: Path, path: str, writing: bool) -> None:
    assert resolve(path, [root], writing=writing) == root / path


def test_the_root_itself_is_inside(root: Path) -> None:
    assert resolve(".", [root], writing=False) == root


@BOTH
@pytest.mark.parametrize(
    "path",
    [
        "../outside/f",
        "src/../../outside/f",
        "{root}/../outside/f",
        "/etc/passwd",
        "missing/../../outside/f",
        "../ws2/f",
        "..",
        "/",
    ],
)
def test_no_dots_and_no_absolute_path_lead_out(root: Path, path: str, writing: bool) -> None:
    assert "out of the workspace" in refused(path.format(root=root), root, writing=writing)


@links
@BOTH
@pytest.mark.parametrize("path", ["out/f", "out/new", "out", "dangling", "chain/f", "src/out/f", "out/../outside/f"])
def test_no_link_leads_out(root: Path, path: str, writing: bool) -> None:
    outside = root.parent / "outside"
    (root / "out").symlink_to(outside)
    (root / "src" / "out").symlink_to("../../outside")
    (root / "chain").symlink_to(root / "out")
    (root / "dangling").symlink_to(outside / "none")
    assert "out of the workspace" in refused(path, root, writing=writing)
    assert not (outside / "none").exists()


@links
def test_links_that_stay_inside_lead_to_the_real_file(root: Path) -> None:
    (root / "alias.py").symlink_to("src/f.py")
    (root.parent / "other name").symlink_to(root)
    assert resolve("alias.py", [root], writing=True) == root / "src" / "f.py"
    assert resolve("src/f.py", [root.parent / "other name"], writing=True) == root / "src" / "f.py"
    assert resolve(f"{root.parent}/other name/src/f.py", [root], writing=True) == root / "src" / "f.py"


def test_where_case_is_ignored_another_spelling_of_the_root_is_inside(root: Path) -> None:
    if not (root.parent / "WS").exists():
        pytest.skip("this file system tells upper from lower case")
    assert resolve(f"{root.parent}/WS/src/f.py", [root], writing=True) == root / "src" / "f.py"


def test_a_second_folder_is_inside_and_relative_paths_are_of_the_first(root: Path) -> None:
    second = root.parent / "outside"
    assert resolve(str(second / "f"), [root, second], writing=True) == second / "f"
    assert resolve("f", [root, second], writing=True) == root / "f"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("", "empty"), ("a\0b", "NUL"), ("\ud800", "no file name"), ("file:///etc/passwd", "is a URI")],
)
def test_what_is_no_path_is_refused(root: Path, path: str, reason: str) -> None:
    assert reason in refused(path, root)


def test_without_a_folder_the_refusal_says_what_to_do(root: Path) -> None:
    with pytest.raises(PathRefused, match="open a folder in the editor"):
        resolve(str(root / "src/f.py"), [], writing=False)


# ------------------------------------------------------------------ .hel


@BOTH
@pytest.mark.parametrize(
    "path",
    [
        ".hel",
        ".hel/mcp.json",
        ".hel/new",
        "{root}/.hel/mcp.json",
        "src/../.hel/mcp.json",
        "./.hel/skills/../mcp.json",
        ".HEL/mcp.json",
        ".Hel/new",
        "src/.hel/hooks.json",
        ".hel./mcp.json",
        ".hel /mcp.json",
        ".h\u200cel/x",
        "．hel/x",
    ],
)
def test_the_folder_of_the_harness_is_closed_in_any_spelling(root: Path, path: str, writing: bool) -> None:
    assert "in .hel" in refused(path.format(root=root), root, writing=writing)


@links
@BOTH
@pytest.mark.parametrize("path", ["file", "folder/mcp.json", "folder/new", "config/mcp.json", "config"])
def test_no_link_leads_into_it(root: Path, path: str, writing: bool) -> None:
    (root / "file").symlink_to(".hel/mcp.json")
    (root / "folder").symlink_to(".hel")
    (root / ".hel").rename(root / "config")
    (root / ".hel").symlink_to("config")
    assert "in .hel" in refused(path, root, writing=writing)


@BOTH
def test_a_hard_link_to_one_of_its_files_is_that_file(root: Path, writing: bool) -> None:
    (root / "innocent").hardlink_to(root / ".hel" / "mcp.json")
    (root / "pair").hardlink_to(root / "src" / "f.py")
    assert "the same file as one in .hel" in refused("innocent", root, writing=writing)
    assert resolve("pair", [root], writing=writing) == root / "pair"


@BOTH
def test_opening_it_as_the_workspace_does_not_open_it_to_tools(root: Path, writing: bool) -> None:
    assert "in .hel" in refused("mcp.json", root / ".hel", writing=writing)


# ------------------------------------------------------------------ many files at once


def readable(path: Path, roots: list[Path], closed: list[Path]) -> bool:
    try:
        return resolve(str(path), roots, writing=False, closed=closed) == path
    except PathRefused:
        return False


@links
def test_of_many_files_those_are_open_that_are_open_one_by_one(root: Path) -> None:
    second, state = root.parent / "outside", root / "state"
    (second / "conf").mkdir()
    (second / ".hel").symlink_to("conf")
    names = [".HEL/a", ".hel./b", "sub/.hel/c", "sub/.\u2064hel/d", "sub/.hello/e", "state/logs/f", ".hel/skills/new"]
    for file in (*(root / name for name in names), second / "conf" / "g"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n")
    for number, known in enumerate(
        (root / ".hel/mcp.json", root / ".hel/skills/new", second / "conf/g", root / "src/f.py")
    ):
        os.link(known, root / "sub" / f"link {number}")
    os.link(root / ".hel" / "mcp.json", second / "link")

    roots, closed = [root, second], [state]
    files = [Path(folder, name) for top in roots for folder, _, found in os.walk(top) for name in found]
    files += [root / ".hel" / "not there yet", root / "not there yet", root / "sub" / "new" / ".hel"]
    open_ones = set(open_to_tools(files, roots, closed=closed))
    assert open_ones == {file for file in files if readable(file, roots, closed)}
    assert {file.relative_to(root.parent).as_posix() for file in open_ones} == {
        *("ws/src/f.py", "ws/sub/link 3", "ws/sub/.hello/e", "ws/not there yet", "ws/.git/config", "outside/f"),
    }


# ------------------------------------------------------------------ git's own folder


@pytest.mark.parametrize(
    "path", [".git/config", ".git/hooks/pre-commit", ".GIT/config", "sub/.git", "sub/.git/HEAD", ".git "]
)
def test_gits_own_folder_can_be_read_and_not_written(root: Path, path: str) -> None:
    assert resolve(path, [root], writing=False).is_relative_to(root)
    assert "git's own folder" in refused(path, root, writing=True)


@links
def test_no_link_leads_into_gits_folder_for_writing(root: Path) -> None:
    (root / "hooks").symlink_to(".git/hooks")
    assert resolve("hooks/x", [root], writing=False) == root / ".git" / "hooks" / "x"
    assert "git's own folder" in refused("hooks/x", root, writing=True)


def test_a_git_folder_by_another_name_is_closed_too(root: Path) -> None:
    (root / ".git").rename(root / "store")
    (root / ".git").write_text("gitdir: store\n")
    for path in (".git", "store/config", "store/hooks/x"):
        assert "git's own folder" in refused(path, root, writing=True)
    assert resolve("src/f.py", [root], writing=True) == root / "src" / "f.py"


def test_the_shared_folder_of_a_worktree_is_closed_and_the_worktree_is_not(root: Path) -> None:
    bare = root / "bare"
    (bare / "worktrees" / "main").mkdir(parents=True)
    (bare / "worktrees" / "main" / "commondir").write_text("../..\n")
    for tree in (root / "main", bare / "main"):
        tree.mkdir()
        (tree / ".git").write_text(f"gitdir: {bare}/worktrees/main\n")
        roots = [tree, root]
        assert resolve(str(tree / "f"), roots, writing=True) == tree / "f"
    with pytest.raises(PathRefused, match="git's own folder"):
        resolve(str(bare / "config"), [root / "main", root], writing=True)


@pytest.mark.parametrize("content", ["", "garbage\n", "gitdir:\n", "gitdir: .\n"])
def test_a_strange_git_file_does_not_close_the_workspace(root: Path, content: str) -> None:
    (root / ".git").rename(root / "was")
    (root / ".git").write_text(content)
    assert resolve("src/f.py", [root], writing=True) == root / "src" / "f.py"


# ------------------------------------------------------------------ files outside that a tool named


def test_a_spilled_result_can_be_read_and_nothing_beside_it(root: Path) -> None:
    spilled = root.parent / "outside" / "f"
    assert resolve(str(spilled), [root], writing=False, readable={spilled}) == spilled
    assert resolve(str(spilled), [], writing=False, readable={spilled}) == spilled
    for path, writing in ((str(spilled), True), (str(spilled.parent / "g"), False), (str(spilled.parent), False)):
        with pytest.raises(PathRefused):
            resolve(path, [root], writing=writing, readable={spilled})


# ------------------------------------------------------------------ other systems


@pytest.mark.parametrize(
    "path",
    [
        "a.txt:stream",
        "C:/ws/a.txt:s",
        ".hel::$INDEX_ALLOCATION/mcp.json",
        "NUL",
        "src/con.txt",
        "COM1",
        "lpt9.log",
        "aux ",
        "a./b",
        "src/a.py.",
        "a.py ",
    ],
)
def test_names_that_windows_takes_for_something_else_are_known(path: str) -> None:
    assert windows_oddity(path) is not None
    assert windows_oddity(path.replace("/", "\\")) is not None


@pytest.mark.parametrize(
    "path", ["a.txt", "C:/ws/a.txt", "C:\\ws\\..\\a", "../x", "./.hidden", "console.py", "com10", "a b/c"]
)
def test_ordinary_names_are_ordinary_on_windows(path: str) -> None:
    assert windows_oddity(path) is None
