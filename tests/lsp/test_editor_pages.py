"""What docs/editors has to paste: it parses, means something to the server, and works in the Emacs that is there."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hel_lsp import settings
from hel_lsp.lsp.server import COMMANDS
from tests.editors.neovim import ModelThread, call, text
from tests.editors.test_eglot import FIND, emacs_with_eglot
from tests.lsp.capability_table import PAGE

PAGES = sorted(PAGE.parent.glob("*.md"))


def blocks(page: str, language: str) -> list[str]:
    content = (PAGE.parent / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", content, re.DOTALL | re.MULTILINE)


def settings_to_paste() -> dict[str, Any]:
    """By page, as the server gets them from that editor."""
    helix = tomllib.loads(blocks("helix.md", "toml")[0])
    sublime, kate, zed = (json.loads(blocks(page, "json")[0]) for page in ("sublime.md", "kate.md", "zed.md"))
    return {
        "helix.md": helix["language-server"]["hel"]["config"],
        "sublime.md": sublime["hel"]["settings"]["hel"],
        "kate.md": kate["servers"]["zz-hel"]["settings"]["hel"],
        "zed.md": zed["lsp"]["hel"]["initialization_options"],
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_configuration_parses(page: Path) -> None:
    for block in blocks(page.name, "json"):
        json.loads(block)
    for block in blocks(page.name, "toml"):
        tomllib.loads(block)


def test_the_settings_are_settings_of_the_server() -> None:
    for page, given in settings_to_paste().items():
        _, problems = settings.parse([given])
        assert problems == [], page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_setting_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"[\"` ](hel\.[a-z]\w+)[\"` ]", page.read_text(encoding="utf-8"))
    assert {*named} <= {*COMMANDS, *(f"hel.{field.name}" for field in dataclasses.fields(settings.Settings))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


SCRIPT = """
(defalias 'completing-read (lambda (&rest _) "Allow once"))

(defun settle-until (text)
  "Do what eglot does when Emacs has been idle for a moment, which it never is in batch."
  (while (not (string= (buffer-string) text))
    (accept-process-output nil 0.05)
    (eglot--signal-textDocument/didChange))
  (eglot--signal-textDocument/didChange))

(find-file "a.txt")
(run-hooks 'post-command-hook)
(hel-ask "go on")
(settle-until "two\\n")
(jsonrpc-request (eglot-current-server) :workspace/executeCommand '(:command "hel.wait" :arguments []))
(hel-undo)
(settle-until "one\\n")
(eglot-shutdown (eglot-current-server))
"""


@pytest.mark.parametrize("emacs", emacs_with_eglot())
def test_emacs_asks_edits_and_undoes_with_the_configuration_of_its_page(emacs: str, tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (tmp_path / "init.el").write_text(blocks("emacs.md", "elisp")[0])
    (tmp_path / "script.el").write_text(SCRIPT)
    with ModelThread([]) as model:
        model.say(call("search_replace", path="a.txt", search="one", replace="two"), text("Done."))
        environment = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HEL_BASE_URL": model.script.base_url,
            "HEL_MODEL": "m",
            "HEL_STATE_DIR": str(tmp_path / "state"),
        }
        ran = subprocess.run(
            [emacs, "-Q", "--batch", "--eval", FIND, "-l", tmp_path / "init.el", "-l", tmp_path / "script.el"],
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert len(model.script.requests) == 2
    assert "go on" in model.script.requests[0]["messages"][-1]["content"]
