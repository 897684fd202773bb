"""The state folder: trust records, run logs, spilled results; readable by the user alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

from hel_lsp.errors import ConfigError


def state_folder() -> Path:
    """`$HEL_STATE_DIR`, else `hel-lsp` in the platform's user state folder; made with mode 0700."""
    named = os.environ.get("HEL_STATE_DIR")
    if named:
        folder = Path(named).expanduser().absolute()
    else:
        import platformdirs  # only where it is needed: the test and demo runs name a folder

        folder = Path(platformdirs.user_state_dir("hel-lsp", appauthor=False))
    return private_folder(folder)


def private_folder(folder: Path) -> Path:
    """Make `folder` and what leads to it, for the user alone. Raises ConfigError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"The state folder {folder} cannot be made: {error.strerror}. Set HEL_STATE_DIR.") from error
    return folder


def read_json(path: Path) -> dict[str, Any]:
    """The object in `path`; empty when there is no file. Raises ConfigError where it is not a JSON object."""
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}. Mend it or remove it.") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path} is not a JSON object. Mend it or remove it.")
    return cast("dict[str, Any]", value)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace `path` whole or not at all, with mode 0600. Raises ConfigError."""
    private_folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error
