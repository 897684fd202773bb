"""Names of parameters that every provider takes: for one `$filter` or `filter[id]` Anthropic refuses the whole request.

It looks at the outermost names alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import count
from typing import Any, cast

_SENDABLE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")
_KEPT = 50  # characters of a name that is too long; a number may follow them
_PROPERTIES = "#/properties/"


def sendable(parameters: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The parameters under names that can be sent, and to each new name the one that the server knows."""
    properties = cast("Mapping[str, Any]", parameters["properties"])
    listed: object = parameters.get("required")
    required = [str(name) for name in cast("list[object]", listed)] if isinstance(listed, list) else []
    new = _new_names([*properties, *required])
    if not new:
        return parameters, {}
    sent = {**parameters, "properties": {new.get(name, name): schema for name, schema in properties.items()}}
    if required:
        sent["required"] = [new.get(name, name) for name in required]
    return cast("Mapping[str, Any]", _pointed(sent, new)), {name: own for own, name in new.items()}


def _new_names(names: Collection[str]) -> Mapping[str, str]:
    """For each name that cannot be sent one that can, like it and unlike all others."""
    taken = {name for name in names if _SENDABLE.fullmatch(name)}
    numbers = count(2)
    new: dict[str, str] = {}
    for name in names:
        if name not in taken and name not in new:
            stem = wanted = _FOREIGN.sub("_", name)[:_KEPT] or "_"
            while wanted in taken:
                wanted = f"{stem}_{next(numbers)}"
            taken.add(wanted)
            new[name] = wanted
    return new


def _pointed(value: object, new: Mapping[str, str]) -> object:
    """`value` with its references to properties going to the new names."""
    if isinstance(value, list):
        return [_pointed(item, new) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    fields = {key: _pointed(item, new) for key, item in cast("dict[str, object]", value).items()}
    reference = fields.get("$ref")
    if isinstance(reference, str) and reference.startswith(_PROPERTIES):
        name, slash, rest = reference.removeprefix(_PROPERTIES).partition("/")
        name = name.replace("~1", "/").replace("~0", "~")
        if name in new:
            fields["$ref"] = f"{_PROPERTIES}{new[name]}{slash}{rest}"
    return fields
