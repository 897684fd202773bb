"""JSON Schemas of MCP tools: a form that model providers accept, and validation by the server's own.

jsonschema is imported when the first call is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

from hel_lsp.errors import InvalidArguments

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

_COMBINATORS = ("oneOf", "anyOf", "allOf")
_STRUCTURE = {*_COMBINATORS, "not", "if", "then", "else", "enum", "const", "$ref"}
_REFUSED_AT_ROOT = {*_STRUCTURE, "$schema", "$id"}
_SHOWN = 5  # faults that one message names
_SHORT = 200  # characters of one fault: some repeat the whole argument

# ------------------------------------------------------------------ what the provider gets


def provider_parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object without combinators at its root, which providers refuse; references still resolve.

    Alternatives become one object with the properties of all, of which only what each requires is required. The
    server's own schema decides in the end: it is what calls are checked against.
    """
    result = {key: value for key, value in schema.items() if key not in _REFUSED_AT_ROOT}
    result["type"] = "object"
    if _STRUCTURE.isdisjoint(schema):
        return result if isinstance(result.get("properties"), dict) else {**result, "properties": {}}
    properties, required = _flattened(schema, schema, 0)
    result["properties"] = properties
    result.pop("required", None)
    if required:
        result["required"] = [name for name in properties if name in required]
    return cast("dict[str, Any]", _resolvable(result, schema, ()))


def _flattened(part: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> tuple[dict[str, Any], set[str]]:
    """The properties of an object schema with all its alternatives, and the names that every alternative requires."""
    properties = dict(_mapping(part.get("properties")))
    required = {name for name in _list(part.get("required")) if isinstance(name, str)}
    if depth > 8:
        return properties, required
    nested = [_mapping(item) for item in _list(part.get("allOf"))]
    if isinstance(part.get("$ref"), str):
        nested.append(_mapping(_lookup(root, part["$ref"])))
    for item in nested:
        more, needed = _flattened(item, root, depth + 1)
        properties = {**more, **properties}
        required |= needed
    for keyword in ("oneOf", "anyOf"):
        alternatives = [_flattened(_mapping(item), root, depth + 1) for item in _list(part.get(keyword))]
        for more, _ in alternatives:
            properties = {**more, **properties}
        if alternatives:
            required |= set[str].intersection(*(needed for _, needed in alternatives))
    return properties, required


def _resolvable(value: object, root: Mapping[str, Any], inside: tuple[str, ...]) -> object:
    """`value` with references into parts that were dropped replaced by what they stood for."""
    if isinstance(value, list):
        return [_resolvable(item, root, inside) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, object]", value)
    reference = fields.get("$ref")
    if isinstance(reference, str) and not reference.startswith(("#/$defs/", "#/definitions/", "#/properties/")):
        if reference in inside:
            return {}  # it contains itself: anything goes
        target = _lookup(root, reference)
        return _resolvable(deepcopy(target), root, (*inside, reference))
    return {key: _resolvable(item, root, inside) for key, item in fields.items()}


def _lookup(root: Mapping[str, Any], reference: str) -> object:
    """What a local reference points to; an empty schema where it points to nothing here."""
    if not reference.startswith("#"):
        return {}
    value: object = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            items = cast("list[object]", value)
            value = items[int(key)] if key.isdecimal() and int(key) < len(items) else {}
        else:
            value = _mapping(value).get(key, {})
    return {} if value is root else value


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


# ------------------------------------------------------------------ what is checked


class SchemaCheck:
    """A schema that values are checked against, by the draft it names, else 2020-12.

    Nothing is fetched for references. A schema that cannot be used (invalid, with references that lead nowhere, or
    with a pattern that Python does not read) lets everything through: the server is the one that decides.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._validator = _validator(schema)

    def faults(self, value: Any) -> list[str]:
        """What does not fit, in words, at most five."""
        return [_in_words(error) for error, _ in zip(self._errors(value), range(_SHOWN), strict=False)]

    def arguments(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments to send: without an explicit null for what may be absent and may not be null.

        Raises InvalidArguments.
        """
        required = _list(self._schema.get("required"))
        nulls = {name for name, value in arguments.items() if value is None and name not in required}
        if nulls:
            refused = {error.path[0] for error in self._errors(arguments) if len(error.path) == 1}
            arguments = {name: value for name, value in arguments.items() if name not in nulls & refused}
        if faults := self.faults(arguments):
            raise InvalidArguments(f"The arguments do not fit {tool}, so it was not called: {'; '.join(faults)}")
        return arguments

    def _errors(self, value: Any) -> Iterator[ValidationError]:
        from referencing.exceptions import Unresolvable  # imported by now, with jsonschema

        if self._validator is None:
            return
        try:
            yield from self._validator.iter_errors(value)
        except (Unresolvable, re.error, RecursionError):
            return


def _validator(schema: Mapping[str, Any]) -> Validator | None:
    from jsonschema import Draft202012Validator, SchemaError, validators
    from referencing import Registry

    kind = validators.validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(dict(schema))
    except (SchemaError, RecursionError):
        return None
    return kind(schema, registry=Registry())


def _in_words(error: ValidationError) -> str:
    message = error.message if len(error.message) <= _SHORT else error.message[:_SHORT] + "…"
    place = ".".join(str(part) for part in error.absolute_path)
    return f"{place}: {message}" if place else message
