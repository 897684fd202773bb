"""Emacs with eglot, in batch: the bytes that it saves after the agent's edits. Runs where `emacs` has eglot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.neovim import ModelThread, call, text
from tests.lsp.personalities import EGLOT, LINE_ENDS

FIND = """
(progn
  (let ((default-directory "/usr/share/emacs/site-lisp/elpa-src/"))
    (when (file-directory-p default-directory) (normal-top-level-add-subdirs-to-load-path)))
  (require 'eglot))
"""

SCRIPT = """
(setq eglot-confirm-server-initiated-edits nil eglot-sync-connect 30 eglot-events-buffer-size 0
      make-backup-files nil create-lockfiles nil)
(defalias 'y-or-n-p (lambda (&rest _) t))
(define-derived-mode sample-mode fundamental-mode "sample")
(add-to-list 'auto-mode-alist '("\\\\.sample\\\\'" . sample-mode))
(add-to-list 'eglot-server-programs '(sample-mode . (PYTHON "-m" "hel_lsp" :initializationOptions (:access "auto"))))
(setq project-find-functions (list (lambda (_) (cons 'transient default-directory))))

(defun settle ()
  "What eglot does when Emacs has been idle for a moment, which it never is in batch."
  (accept-process-output nil 0.05)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (bound-and-true-p eglot--managed-mode) (eglot--signal-textDocument/didChange)))))

(find-file "open.sample")
(call-interactively 'eglot)
(let ((server (eglot-current-server)) (done nil))
  (dolist (step STEPS)
    (jsonrpc-request server :workspace/executeCommand
                     '(:command "hel.ask" :arguments [(:prompt "go on")]) :timeout 60)
    (setq done nil)
    (jsonrpc-async-request server :workspace/executeCommand '(:command "hel.wait" :arguments [(:session nil)])
                           :success-fn (lambda (result) (setq done result)) :timeout 60)
    (while (not done) (settle))
    (princ (format "edit %S\\n" (plist-get done :edits))))
  (save-some-buffers t)
  (eglot-shutdown server))
"""

CASES = {
    "open.sample": (
        b"a\r\n\xf0\x9f\x98\x80 b\r\nc\r\n",
        " b\nc",
        " B\nnew\nC",
        b"a\r\n\xf0\x9f\x98\x80 B\r\nnew\r\nC\r\n",
    ),
    "lf.sample": (b"a\nb\n", "b\n", "b\nc\n", b"a\nb\nc\n"),
    "crlf.sample": (b"a\r\nb\r\n", "b", "B", b"a\r\nB\r\n"),
    "mixed.sample": (b"a\r\nb\nc\r\n", "b", "B", b"a\r\nB\nc\r\n"),
    "bom.sample": (b"\xef\xbb\xbfa\n", "a", "A", b"\xef\xbb\xbfA\n"),
    "end.sample": (b"a", "a", "b", b"b"),
    "feed.sample": ("a\fb\u2028c\n\td\n".encode(), "\td", "\te", "a\fb\u2028c\n\te\n".encode()),
}


LINE_ENDS_SCRIPT = """
(princ (json-encode (mapcar (lambda (file)
                              (with-current-buffer (find-file-noselect file)
                                (set-buffer-modified-p t)
                                (let ((make-backup-files nil)) (save-buffer))
                                (buffer-string)))
                            command-line-args-left)))
"""


def emacs_with_eglot() -> list[str]:
    emacs = shutil.which("emacs")
    if emacs is None:
        return []
    found = subprocess.run([emacs, "-Q", "--batch", "--eval", FIND], capture_output=True, check=False)
    return [emacs] if found.returncode == 0 else []


@pytest.mark.parametrize("emacs", emacs_with_eglot())
def test_what_emacs_saves_is_exact(emacs: str, tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    with ModelThread([]) as model:
        for name, (before, search, replace, _) in CASES.items():
            (folder / name).write_bytes(before)
            model.say(call("search_replace", path=name, search=search, replace=replace), text("Done."))
        model.say(call("write_file", path="new/file.sample", content="# Ü 😀\n"), text("Done."))
        steps = f"(number-sequence 1 {len(CASES) + 1})"
        script = SCRIPT.replace("PYTHON", json.dumps(sys.executable)).replace("STEPS", steps)
        (tmp_path / "script.el").write_text(script)
        environment = {
            "HEL_BASE_URL": model.script.base_url,
            "HEL_MODEL": "m",
            "HEL_STATE_DIR": str(tmp_path / "state"),
        }
        ran = subprocess.run(
            [emacs, "-Q", "--batch", "--eval", FIND, "-l", str(tmp_path / "script.el")],
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    for name, (_, _, _, after) in CASES.items():
        assert (folder / name).read_bytes() == after, (name, ran.stdout, model.tool_results())
    assert (folder / "new" / "file.sample").read_bytes() == "# Ü 😀\n".encode()


@pytest.mark.parametrize("emacs", emacs_with_eglot())
def test_the_model_of_emacs_has_the_lines_that_emacs_has(emacs: str, tmp_path: Path) -> None:
    script = tmp_path / "script.el"
    script.write_text("(require 'json)" + LINE_ENDS_SCRIPT)
    paths = [tmp_path / f"{number}.sample" for number in range(len(LINE_ENDS))]
    for path, content in zip(paths, LINE_ENDS, strict=True):
        path.write_bytes(content)
    ran = subprocess.run([emacs, "-Q", "--batch", "-l", script, *paths], capture_output=True, check=True)
    held = [EGLOT.load(content) for content in LINE_ENDS]
    assert json.loads(ran.stdout) == [one.text for one in held]
    assert [path.read_bytes() for path in paths] == [EGLOT.save(one) for one in held]
