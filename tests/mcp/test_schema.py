from __future__ import annotations

from typing import Any

import pytest

from hel_lsp.errors import InvalidArguments
from hel_lsp.mcp.schema import SchemaCheck, provider_parameters

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


def test_arguments_that_do_not_fit_are_named() -> None:
    check = SchemaCheck({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["m"]})
    with pytest.raises(InvalidArguments) as caught:
        check.arguments("mcp__s__t", {"n": "x"})
    assert "mcp__s__t" in caught.value.message
    assert "n: 'x' is not of type 'integer'" in caught.value.message
    assert "'m' is a required property" in caught.value.message


def test_a_fault_that_repeats_a_huge_argument_is_cut() -> None:
    with pytest.raises(InvalidArguments) as caught:
        SchemaCheck({"properties": {"n": {"type": "integer"}}}).arguments("t", {"n": "x" * 10_000})
    assert len(caught.value.message) < 500


def test_null_for_an_optional_argument_is_left_out_where_it_is_not_admitted() -> None:
    check = SchemaCheck(
        {
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"type": ["string", "null"]},
                "c": {"$ref": "#/$defs/name"},
                "d": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "e": {"enum": ["x"]},
            },
            "$defs": {"name": {"type": "string"}},
        }
    )
    assert check.arguments("t", dict.fromkeys("abcdef")) == {"b": None, "d": None, "f": None}


def test_null_for_a_required_argument_is_a_fault() -> None:
    with pytest.raises(InvalidArguments):
        SchemaCheck(A).arguments("t", {"a": None})


def test_the_draft_that_a_schema_names_decides() -> None:
    tuple_of_one = {"properties": {"p": {"type": "array", "items": [{"type": "integer"}]}}}
    draft7 = SchemaCheck({"$schema": "http://json-schema.org/draft-07/schema#", **tuple_of_one})
    with pytest.raises(InvalidArguments):
        draft7.arguments("t", {"p": ["x"]})
    newest = SchemaCheck({"properties": {"p": {"prefixItems": [{"type": "integer"}]}}})
    with pytest.raises(InvalidArguments):
        newest.arguments("t", {"p": ["x"]})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"properties": {"a": {"$ref": "#/$defs/nowhere"}}},
        {"properties": {"a": {"type": "no such type"}}},
        {"properties": {"a": {"pattern": "(?<js>x"}}},
        {"properties": 5},
    ],
)
def test_a_schema_that_cannot_be_used_lets_everything_through(schema: dict[str, Any]) -> None:
    assert SchemaCheck(schema).arguments("t", {"a": "x"}) == {"a": "x"}
