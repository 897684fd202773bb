from __future__ import annotations

import json
from typing import Any

import pytest

from hel_lsp.mcp.schema import LEVELS, SCHEMA_LIMIT, nested_deeper, provider_parameters

A = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
B = {"type": "object", "properties": {"b": {"type": "string"}, "a": {}}, "required": ["b", "a"]}


def test_a_plain_schema_goes_to_the_provider_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"oneOf": [{}, {}]}}, "additionalProperties": False}
    assert provider_parameters(schema) == schema


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_alternatives_at_the_root_become_one_object(keyword: str) -> None:
    sent = provider_parameters({"type": "object", "properties": {"c": {}}, "required": ["c"], keyword: [A, B]})
    assert keyword not in sent
    assert sent["type"] == "object"
    assert set(sent["properties"]) == {"a", "b", "c"}
    assert set(sent["required"]) == {"a", "c"}


def test_all_of_at_the_root_requires_everything() -> None:
    sent = provider_parameters({"allOf": [A, B]})
    assert set(sent["required"]) == {"a", "b"}


def test_a_reference_at_the_root_is_followed_and_others_still_resolve() -> None:
    schema = {
        "$ref": "#/$defs/input",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$defs": {
            "input": {"type": "object", "properties": {"p": {"$ref": "#/$defs/point"}}, "required": ["p"]},
            "point": {"type": "object", "properties": {"next": {"$ref": "#/$defs/point"}}},
        },
    }
    sent = provider_parameters(schema)
    assert sent["properties"] == {"p": {"$ref": "#/$defs/point"}}
    assert sent["$defs"]["point"] == schema["$defs"]["point"]
    assert sent["required"] == ["p"]
    assert "$ref" not in sent
    assert "$schema" not in sent


def test_a_reference_into_a_dropped_alternative_is_replaced_by_what_it_means() -> None:
    schema = {"anyOf": [A, {"properties": {"b": {"$ref": "#/anyOf/0/properties/a"}}}]}
    assert provider_parameters(schema)["properties"]["b"] == {"type": "string"}


def test_a_schema_that_contains_itself_does_not_go_on_for_ever() -> None:
    schema: dict[str, Any] = {"allOf": [{"$ref": "#"}, {"$ref": "#/allOf/0"}, A]}
    assert provider_parameters(schema)["properties"] == A["properties"]


@pytest.mark.parametrize("schema", [{"anyOf": 5}, {"anyOf": [3, None]}, {"$ref": 7}, {"enum": []}, {"not": {}}])
def test_nonsense_still_gives_an_object(schema: dict[str, Any]) -> None:
    assert provider_parameters(schema)["type"] == "object"


def references(value: Any) -> list[str]:
    """Every reference in a schema."""
    if isinstance(value, list):
        return [reference for item in value for reference in references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    return own + [reference for item in value.values() for reference in references(item)]


def doubling(levels: int) -> dict[str, Any]:
    """A schema that, with its references written out, is twice as large with each level."""
    parts = {
        f"x{level}": {"properties": {side: {"$ref": f"#/x{level + 1}"} for side in ("left", "right")}}
        for level in range(levels)
    }
    return {"allOf": [], "properties": {"p": {"$ref": "#/x0"}}, **parts, f"x{levels}": {"type": "string"}}


def nested() -> dict[str, Any]:
    """One with a reference to each part of a part."""
    part: dict[str, Any] = {"type": "string"}
    properties: dict[str, Any] = {}
    pointer = "#/allOf/0"
    for level in range(45):
        part = {"properties": {"q": part}, "description": "y" * 1000}
        properties[f"r{level}"] = {"$ref": pointer}
        pointer += "/properties/q"
    return {"allOf": [part], "properties": properties}


MANY = {f"p{number}": {"type": "string"} for number in range(3000)}


@pytest.mark.parametrize(
    "schema",
    [
        doubling(60),
        nested(),
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}] * 500}}},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, A] * 300}}},
        {"allOf": [{"$ref": "#/$defs/a"}] * 1000, "$defs": {"a": {"properties": MANY}}},
        {
            "anyOf": [{"properties": MANY}],
            "properties": {f"r{zeros}": {"$ref": "#/anyOf/" + "0" * zeros} for zeros in range(1, 300)},
        },
        {"allOf": [{"$ref": "#/allOf/" + "9" * 5000}]},
    ],
    ids=["doubling", "nested", "recursive", "alternatives", "wide", "spelled", "number"],
)
def test_references_do_not_blow_up_what_the_provider_gets(schema: dict[str, Any]) -> None:
    sent = provider_parameters(schema)
    assert len(json.dumps(sent)) <= 2 * len(json.dumps(schema)) + SCHEMA_LIMIT
    assert {reference for reference in references(sent) if reference.rpartition("/")[2] not in sent["$defs"]} == set()


def test_what_references_stood_for_is_still_all_there() -> None:
    sent = provider_parameters(doubling(5))
    part = sent["properties"]["p"]
    for _ in range(5):
        part = sent["$defs"][part["$ref"].removeprefix("#/$defs/")]["properties"]["left"]
    assert part == {"type": "string"}


def test_definitions_of_the_server_keep_their_names() -> None:
    own = {"part1": {"type": "string"}}
    long = {"type": "object", "description": "y" * 200}
    fields = {"b": {"$ref": "#/anyOf/0", "title": "B"}, "c": {"$ref": "#/$defs/part1"}}
    sent = provider_parameters({"anyOf": [long], "properties": fields, "$defs": own})
    assert sent["$defs"] == {**own, "part2": long}
    assert sent["properties"]["b"] == {"$ref": "#/$defs/part2", "title": "B"}
    assert sent["properties"]["c"] == fields["c"]


@pytest.mark.parametrize("container", [lambda value: [value], lambda value: {"a": value}])
def test_levels_are_counted_without_going_deep(container: Any) -> None:
    value: Any = "x"
    for _ in range(LEVELS):
        value = container(value)
    assert not nested_deeper(value, LEVELS)
    assert nested_deeper(container(value), LEVELS)
    for _ in range(100_000):
        value = container(value)
    assert nested_deeper(value, LEVELS)
