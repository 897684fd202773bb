"""The MCP server lists of a workspace: `.hel/mcp.json`, and `.mcp.json` as other clients write it.

Imports pydantic, so it is itself imported only when such a file is there.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from hel_lsp.errors import ConfigError
from hel_lsp.jsonfile import parse_json, read_bytes
from hel_lsp.platforms import is_variable_among

_NAME = re.compile(r"(?!.*__)[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_KNOWN_ELSEWHERE = {"type", "description"}  # other clients write these; they say nothing that is needed here


class _Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="allow", strict=True)


class ToolFilter(_Shape):
    """Which of a server's tools are offered, as globs of the names that the server gives them."""

    include: list[str] = Field(default=["*"])
    exclude: list[str] = Field(default=[])


class Authorization(_Shape):
    """What a server needs that does not register clients by itself; the secret stays in the environment."""

    client_id: str | None = None
    client_secret_env: str | None = None
    scopes: list[str] = Field(default=[])
    metadata_url: str | None = None


class ServerEntry(_Shape):
    """One server as its file declares it, variables expanded. Has either `command` or `url`."""

    command: str | None = None
    args: list[str] = Field(default=[])
    env: dict[str, str] = Field(default={})
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default={})
    auth: Authorization | None = None
    timeout: float | None = Field(default=None, gt=0)
    start_timeout: float | None = Field(default=None, gt=0)
    disabled: bool = False
    tools: ToolFilter = ToolFilter()
    always_load: bool | list[str] = False
    trust_annotations: bool | None = None


@dataclass(frozen=True, slots=True)
class DeclaredServer:
    """A server of a file; where `entry` is None, `status` and `problem` say why it cannot be started.

    `line` is what it would start, for the person who is asked; empty where these bytes can start nothing.
    """

    name: str
    entry: ServerEntry | None
    status: Literal["disabled", "failed"] = "disabled"
    problem: str = ""
    diagnostics: tuple[str, ...] = ()
    line: str = ""


@dataclass(frozen=True, slots=True)
class ServerFile:
    """What a file says. `lines` is what it would start, for the person who is asked; `sha256` is of its bytes."""

    path: Path
    sha256: str
    servers: tuple[DeclaredServer, ...]
    lines: tuple[str, ...] = field(default=())


def read_servers(path: Path, key: str, environment: Mapping[str, str], refused: Collection[str]) -> ServerFile | None:
    """What the file declares under `key`; None when there is no such file.

    `environment` is where `${VAR}` is looked up, `refused` names variables that may not be. Raises ConfigError,
    with line and column, for a file that cannot be parsed.
    """
    data = read_bytes(path)
    if data is None:
        return None
    declared = _declarations(path, key, data)
    servers = tuple(_server(name, raw, environment, refused) for name, raw in declared.items())
    lines = tuple(server.line for server in servers if server.line)
    return ServerFile(path, hashlib.sha256(data).hexdigest(), servers, lines)


def _declarations(path: Path, key: str, data: bytes) -> dict[str, Any]:
    servers: object = _object(parse_json(path, data)).get(key)
    if not isinstance(servers, dict):
        raise ConfigError(f'{path}, line 1, column 1: expected {{"{key}": {{NAME: {{…}}}}}}.')
    return _object(cast("object", servers))


def _object(value: object) -> dict[str, Any]:
    """`value` where it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _server(name: str, raw: object, environment: Mapping[str, str], refused: Collection[str]) -> DeclaredServer:
    if not _NAME.fullmatch(name):
        return DeclaredServer(name, None, "failed", "a server's name is letters, digits, - and single _")
    if _object(raw).get("disabled") is True:
        return DeclaredServer(name, None, "disabled", "disabled in the file")
    try:
        declared = ServerEntry.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return DeclaredServer(name, None, "failed", f"{place}: {first['msg']}" if place else first["msg"])
    if (declared.command is None) == (declared.url is None):
        return DeclaredServer(name, None, "failed", "expected either command or url")
    # What is shown and what runs is read from the same shape: expanding changes the texts in it and nothing else.
    line = _line(name, declared)
    try:
        entry = ServerEntry.model_validate(_expand(raw, "", environment, refused))
        _refuse_key(entry.auth, refused)
    except ConfigError as error:
        return DeclaredServer(name, None, "disabled", error.message, line=line)
    unknown = sorted((entry.model_extra or {}).keys() - _KNOWN_ELSEWHERE)
    ignored = tuple(f"{key}: not a setting of a server, ignored" for key in unknown)
    return DeclaredServer(name, entry, diagnostics=ignored, line=line)


def _refuse_key(auth: Authorization | None, refused: Collection[str]) -> None:
    if auth is not None and auth.client_secret_env and is_variable_among(auth.client_secret_env, refused):
        raise _is_key("auth.clientSecretEnv", auth.client_secret_env)


def _is_key(place: str, variable: str) -> ConfigError:
    return ConfigError(f"{place}: {variable} is the model's key, which no server gets")


def _expand(value: object, place: str, environment: Mapping[str, str], refused: Collection[str]) -> object:
    """`value` with `${VAR}` and `${VAR:-default}` replaced in every string. Raises ConfigError naming `place`."""
    if fields := _object(value):
        prefix = f"{place}." if place else ""
        return {key: _expand(item, f"{prefix}{key}", environment, refused) for key, item in fields.items()}
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [_expand(item, f"{place}.{index}", environment, refused) for index, item in enumerate(items)]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        variable, default = match[1], match[2]
        if is_variable_among(variable, refused):
            raise _is_key(place, f"${{{variable}}}")
        if default is not None:
            return environment.get(variable) or default
        if variable not in environment:
            raise ConfigError(f"{place}: the environment variable {variable} is not set")
        return environment[variable]

    return _VARIABLE.sub(replace, value)


def _line(name: str, entry: ServerEntry) -> str:
    """What an entry would start, as it stands in the file: values of variables and headers are not shown."""
    if entry.url is not None:
        line, names, kind = f"{name}: {entry.url}", entry.headers, "headers"
    else:
        line, names, kind = f"{name}: {shlex.join([entry.command or '', *entry.args])}", entry.env, "variables"
    if entry.cwd is not None:
        line += f" in {entry.cwd}"
    if entry.auth is not None and entry.auth.metadata_url is not None:
        line += f" as the client of {entry.auth.metadata_url}"
    if names:
        line += f" with the {kind} {', '.join(names)}"
    used = _variables(json.dumps(entry.model_dump(), ensure_ascii=False))
    if entry.auth is not None and entry.auth.client_secret_env is not None:
        used.append(entry.auth.client_secret_env)
    if unseen := [variable for variable in dict.fromkeys(used) if variable not in _variables(line)]:
        line += f", using {', '.join(unseen)} of your environment"
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in line)


def _variables(text: str) -> list[str]:
    return [match[1] for match in _VARIABLE.finditer(text)]
