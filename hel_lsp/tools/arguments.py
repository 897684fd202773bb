"""What a model wrote as arguments, read strictly: an object that fits, or an error that says what does not.

Tools declare their arguments as pydantic models; the schema that is sent is that model's, without the parts that
only cost bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from hel_lsp.errors import InvalidArguments
from hel_lsp.messages import ToolCall, ToolDefinition


class Arguments(BaseModel):
    """Base of the built-in tools' arguments; an argument that is not declared is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)


def parse_arguments(call: ToolCall, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The object that `call.arguments` holds. Raises InvalidArguments.

    Empty or `null` arguments are an empty object only for a tool that takes none: elsewhere they are a reply that
    lost something, and must not run as if nothing had been meant.
    """
    text = call.arguments.strip()
    if text in ("", "null"):
        if not parameters.get("properties"):
            return {}
        raise InvalidArguments(f"{call.name} was called without arguments. It takes: {_names(parameters)}.")
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(
            f"The arguments of {call.name} are not valid JSON ({error}), so nothing was run. "
            "Write one JSON object, with line breaks inside strings as \\n."
        ) from error
    if not isinstance(value, dict):
        raise InvalidArguments(f"The arguments of {call.name} must be a JSON object, not {_kind(value)}.")
    return cast("dict[str, Any]", value)


def history_arguments(call: ToolCall) -> str:
    """The arguments as they go into the history: what the model wrote where that is an object, else a valid stand-in.

    Providers refuse a history with broken JSON in it, and then every later request fails.
    """
    text = call.arguments.strip()
    try:
        value: object = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return json.dumps({"invalid_arguments": call.arguments})
    if value is None:
        return "{}"
    return call.arguments if text and isinstance(value, dict) else json.dumps(value if text == "" else {"value": value})


def check(kind: type[A], tool: str, arguments: Mapping[str, Any]) -> A:
    """`arguments` as a `kind`. Raises InvalidArguments naming each argument that does not fit.

    An explicit null counts as absent: models write that for an argument they do not want to give.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise InvalidArguments(f"The arguments of {tool} do not fit: {faults}.") from error


def define(name: str, description: str, kind: type[Arguments]) -> ToolDefinition:
    """The definition that the model is sent, small: no titles, no defaults, no marks of strictness."""
    schema = kind.model_json_schema()
    properties = {key: _trim(value) for key, value in schema.get("properties", {}).items()}
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if schema.get("required"):
        parameters["required"] = schema["required"]
    return ToolDefinition(name, description, parameters)


def _trim(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key in ("type", "description", "items", "anyOf")}
    options = [option for option in kept.pop("anyOf", []) if option != {"type": "null"}]
    return {**options[0], **kept} if options else kept


def _names(parameters: Mapping[str, Any]) -> str:
    return ", ".join(parameters.get("properties", {})) or "nothing"


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "a number"
