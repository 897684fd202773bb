"""JSON Schemas of MCP tools, in a form that model providers accept.

A schema is as large and as entangled as its server likes: whatever is done with it here is linear in its size.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from itertools import count
from typing import Any, cast

LEVELS = 100
"""Levels of arrays and objects in a schema or in arguments; the SDK's serialiser gives up at 255."""

SCHEMA_LIMIT = 128_000
"""Characters of a schema that is used."""

_COMBINATORS = ("oneOf", "anyOf", "allOf")
_STRUCTURE = {*_COMBINATORS, "not", "if", "then", "else", "enum", "const", "$ref"}
_REFUSED_AT_ROOT = {*_STRUCTURE, "$schema", "$id"}
_KEPT = ("#/$defs/", "#/definitions/", "#/properties/")  # what is still there where the root has been flattened
_MERGED = 20_000  # properties that are gone through for the alternatives of one schema
_INLINED = 100  # characters of what is written out where it is referred to


def nested_deeper(value: object, levels: int) -> bool:
    """Whether it has more than so many levels of arrays and objects."""
    level = [value]
    for _ in range(levels):
        level = [part for whole in level for part in _inside(whole) if isinstance(part, dict | list)]
        if not level:
            return False
    return True


def parts(value: object, most: int) -> int:
    """How many parts it has; where they are more than `most`, some number above it."""
    found = 0
    waiting = [value]
    while waiting and found <= most:
        inside = _inside(waiting.pop())
        found += len(inside)
        waiting.extend(inside if found <= most else ())
    return found


def _inside(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def oversize(schema: Mapping[str, Any]) -> str:
    """In what it is too large to be used, in words; empty where it is not."""
    if nested_deeper(schema, LEVELS):
        return f"is nested more than {LEVELS} levels deep"
    length = len(json.dumps(schema))
    return f"has {length} characters, {SCHEMA_LIMIT} are possible" if length > SCHEMA_LIMIT else ""


def provider_parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object without combinators at its root, which providers refuse; references still resolve.

    Alternatives become one object with the properties of all, of which only what each requires is required. The
    server's own schema decides in the end: it is what calls are checked against.
    """
    result = {key: value for key, value in schema.items() if key not in _REFUSED_AT_ROOT}
    result["type"] = "object"
    if _STRUCTURE.isdisjoint(schema):
        return result if isinstance(result.get("properties"), dict) else {**result, "properties": {}}
    properties, required = _Alternatives(schema).merged(schema)
    result["properties"] = properties
    result.pop("required", None)
    if required:
        result["required"] = [name for name in properties if name in required]
    return _References(schema).resolvable(result)


class _Alternatives:
    """The alternatives of an object schema as one; those for which there is no room are left out."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._room = _MERGED

    def merged(self, part: Mapping[str, Any], depth: int = 0) -> tuple[dict[str, Any], set[str]]:
        """The properties of `part` with all its alternatives, and the names that every alternative requires."""
        if self._room < 0:
            return {}, set()
        properties = dict(_mapping(part.get("properties")))
        required = {name for name in _list(part.get("required")) if isinstance(name, str)}
        self._room -= 1 + len(properties) + len(required)
        if depth > 8:
            return properties, required
        nested = [_mapping(item) for item in _list(part.get("allOf"))]
        if isinstance(part.get("$ref"), str):
            nested.append(_mapping(_lookup(self._root, part["$ref"])))
        for item in nested:
            more, needed = self.merged(item, depth + 1)
            properties = self._joined(more, properties)
            required |= needed
        for keyword in ("oneOf", "anyOf"):
            alternatives = [self.merged(_mapping(item), depth + 1) for item in _list(part.get(keyword))]
            for more, _ in alternatives:
                properties = self._joined(more, properties)
            if alternatives:
                required |= set[str].intersection(*(needed for _, needed in alternatives))
        return properties, required

    def _joined(self, more: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
        self._room -= len(more) + len(properties)
        return {**more, **properties} if self._room >= 0 else properties


class _References:
    """Sees that references into parts that were dropped resolve.

    What they stood for moves to `$defs`, each part once: written out at each place it would double with each level.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._names: dict[int, str] = {}
        self._moved: list[Mapping[str, Any]] = []
        self._room = SCHEMA_LIMIT

    def resolvable(self, result: dict[str, Any]) -> dict[str, Any]:
        """`result` with what its references need."""
        result = cast("dict[str, Any]", self._seen_to(result))
        definitions = dict(_mapping(result.get("$defs")))
        while self._moved:
            target = self._moved.pop()
            definitions[self._names[id(target)]] = self._seen_to(target)
        return {**result, "$defs": definitions} if definitions else result

    def _seen_to(self, value: object) -> object:
        if isinstance(value, list):
            return [self._seen_to(item) for item in cast("list[object]", value)]
        if not isinstance(value, dict):
            return value
        fields = {key: self._seen_to(item) for key, item in cast("dict[str, object]", value).items()}
        reference = fields.get("$ref")
        if not isinstance(reference, str) or reference.startswith(_KEPT):
            return fields
        del fields["$ref"]
        return self._written_out(_mapping(_lookup(self._root, reference)), fields)

    def _written_out(self, target: Mapping[str, Any], beside: Mapping[str, object]) -> Mapping[str, object]:
        """What stands for a reference to `target`; where there is no room for it, anything is allowed."""
        if id(target) not in self._names:
            text = json.dumps(target) if self._room > 0 else ""
            self._room -= len(text)
            if self._room <= 0:
                return beside
            if len(text) <= _INLINED and "$ref" not in text:
                return {**target, **beside}
            self._names[id(target)] = self._free_name()
            self._moved.append(target)
        return {**beside, "$ref": f"#/$defs/{self._names[id(target)]}"}

    def _free_name(self) -> str:
        taken = {*self._names.values(), *_mapping(self._root.get("$defs"))}
        return next(name for number in count(1) if (name := f"part{number}") not in taken)


def _lookup(root: Mapping[str, Any], reference: str) -> object:
    """What a local reference points to; an empty schema where it points to nothing here."""
    if not reference.startswith("#"):
        return {}
    value: object = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            items = cast("list[object]", value)
            value = items[int(key)] if key.isdecimal() and len(key) < 9 and int(key) < len(items) else {}
        else:
            value = _mapping(value).get(key, {})
    return {} if value is root else value


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
