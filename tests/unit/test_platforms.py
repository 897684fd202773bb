"""Which program a name stands for, and which variables a child gets, as each system has it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hel_lsp import platforms


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with programs of its own."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in ("rg", "rg.EXE", "rg.CMD", "bash.EXE", "npx.CMD"):
        (folder / name).touch(mode=0o755)
    monkeypatch.chdir(folder)
    return folder


def test_on_windows_a_program_of_the_current_folder_is_nobodys_shell_search_or_server(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There `shutil.which` looks into the current folder before the PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("PATHEXT", ".EXE;.CMD")
    for path in (str(programs), os.pathsep.join(["", ".", str(programs)])):
        monkeypatch.setenv("PATH", path)
        assert (platforms.find_program("rg"), platforms.find_shell()) == (None, None)
        assert platforms.find_command("npx", {"PATH": path}, repository) is None
    for name in ("rg.CMD", "bash.EXE", "npx.CMD"):
        (programs / name).touch(mode=0o755)
    assert platforms.find_program("rg") == platforms.find_program("rg.CMD") == str(programs / "rg.CMD")
    assert platforms.find_shell() == str(programs / "bash.EXE")
    assert platforms.find_command("npx", {"PATH": str(programs)}, repository) == str(programs / "npx.CMD")


def test_a_child_is_not_given_a_variable_by_a_name_that_the_system_takes_for_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    assert "MY_KEY" in platforms.environment_without({"my_key"})
    assert "MY_KEY" not in platforms.environment_without({"MY_KEY"})
    monkeypatch.setattr(sys, "platform", "win32")
    assert "MY_KEY" not in platforms.environment_without({"my_key"})
