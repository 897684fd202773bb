"""Values checked against a server's schema, also against one that is made to take for ever."""

from __future__ import annotations

from typing import Any

import pytest

from hel_lsp.errors import InvalidArguments
from hel_lsp.mcp.results import to_result
from hel_lsp.mcp.validation import SchemaCheck

A = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


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


def chain(levels: int, *, keyword: str = "allOf", **more: Any) -> dict[str, Any]:
    """A schema whose references double with each level."""
    parts = {f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{levels}": {"type": "object", **more}}}


def dependents(levels: int) -> dict[str, Any]:
    parts = {
        f"d{level}": {"dependentSchemas": {side: {"$ref": f"#/$defs/d{level + 1}"} for side in "ab"}}
        for level in range(levels)
    }
    return {"unevaluatedProperties": False, **parts["d0"], "$defs": {**parts, f"d{levels}": {}}}


PATTERNS = [
    "^(a+)+$",
    "(a|aa)+$",
    "a*a*a*a*a*a*b",
    "a?" * 40 + "a" * 40 + "$",
    r"(a*)\1*b",
    "(?=(a+)+$)",
    "[ab]*[ab]*c{9}",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_that_could_take_for_ever_is_left_to_the_server(pattern: str) -> None:
    text = "a" * 100_000 + "!"
    assert SchemaCheck({"properties": {"x": {"pattern": pattern}}}).faults({"x": text}) == []
    by_name = {"patternProperties": {pattern: {"type": "integer"}}, "additionalProperties": False}
    assert SchemaCheck(by_name).faults({text: "x"}) == []


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    "around",
    [
        lambda x: {"not": x},
        lambda x: {"oneOf": [x, {"type": "integer"}]},
        lambda x: {"anyOf": [x, {"type": "integer"}]},
        lambda x: {"if": x, "else": False},
        lambda x: {"if": x, "then": False},
    ],
    ids=["not", "oneOf", "anyOf", "else", "then"],
)
def test_nothing_is_refused_for_a_pattern_that_was_not_tried(pattern: str, around: Any) -> None:
    schema = {"properties": {"x": around({"pattern": pattern})}}
    assert SchemaCheck(schema).arguments("t", {"x": "a" * 100_000 + "!"})


@pytest.mark.parametrize(
    ("pattern", "fits", "breaks"),
    [
        ("^[A-Z][A-Z0-9_]+$", "ABC_1", "abc"),
        (r"^\d{4}-\d{2}-\d{2}$", "2026-01-31", "31.1."),
        ("^#[0-9a-fA-F]{6}$", "#00ff00", "green"),
        (r"^[^@\s]+@[^@\s]+$", "a@b", "a"),
        (r"[.]json$", "x" * 900 + ".json", "x" * 900),
        (r"^[\w.-]{1,64}$", "a-b.c", "a/b"),
    ],
)
def test_a_pattern_that_takes_few_steps_is_checked(pattern: str, fits: str, breaks: str) -> None:
    check = SchemaCheck({"properties": {"x": {"pattern": pattern}}})
    assert check.arguments("t", {"x": fits}) == {"x": fits}
    with pytest.raises(InvalidArguments):
        check.arguments("t", {"x": breaks})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (chain(60), {}),
        (chain(60, keyword="anyOf", required=["n"]), {}),
        (chain(60, keyword="oneOf"), {}),
        (dependents(60), {"a": 1, "b": 2}),
        ({"properties": {"x": {"uniqueItems": True}}}, {"x": [{"n": [number]} for number in range(50_000)]}),
        ({"properties": {"x": {"items": chain(8, minProperties=1)}}, "$defs": chain(8)["$defs"]}, {"x": [{}] * 40_000}),
        ({"properties": {f"p{number}": A for number in range(100_000)}}, {}),
    ],
    ids=["allOf", "anyOf", "oneOf", "dependents", "unique", "items", "large schema"],
)
def test_a_schema_that_could_take_for_ever_is_given_up(schema: dict[str, Any], value: dict[str, Any]) -> None:
    SchemaCheck(schema).faults(value)


def test_what_was_found_before_the_check_was_given_up_counts() -> None:
    check = SchemaCheck({"required": ["n"], "properties": {"x": {"pattern": "^(a+)+$"}}})
    with pytest.raises(InvalidArguments, match="'n' is a required property"):
        check.arguments("t", {"x": "a" * 100 + "!"})


def test_a_result_is_delivered_whatever_its_schema_would_take() -> None:
    schema = {"properties": {"x": {"pattern": "^(a+)+$"}}}
    text = "a" * 100 + "!"
    assert text in to_result({"content": [], "structuredContent": {"x": text}}, schema).text


def test_equal_items_are_still_found() -> None:
    check = SchemaCheck({"properties": {"x": {"uniqueItems": True}}})
    for distinct in ([1, True, "1", [1], {"a": 1}], [], [[], {}, None, 0, False, ""]):
        assert check.faults({"x": distinct}) == []
    for equal in ([1, 1], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], ["x", "y", "x"]):
        assert len(check.faults({"x": equal})) == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": 5, "properties": {"a": {}}},
        {"$schema": "http://[", "properties": {"a": {}}},
        {"properties": {"a": {"multipleOf": 1e308}}},
        {"properties": {"a": {"pattern": "a{99999999999999999999}"}}},
        {"properties": {"a": {"pattern": "[z-a]"}}},
        {"$schema": "http://json-schema.org/draft-04/schema#", "not": {"$ref": {}}},
        {"$schema": "http://json-schema.org/draft-03/schema", "type": "no such type"},
        {"properties": {"a": {"$ref": "http://["}}},
    ],
)
def test_a_schema_with_which_the_library_breaks_lets_everything_through(schema: dict[str, Any]) -> None:
    for value in ("x", 10**4000):
        assert SchemaCheck(schema).arguments("t", {"a": value}) == {"a": value}


def test_arguments_nested_too_deeply_are_refused_before_they_are_sent() -> None:
    value: Any = "x"
    for _ in range(400):
        value = [value]
    with pytest.raises(InvalidArguments, match="nested more than 100 levels deep"):
        SchemaCheck({}).arguments("t", {"a": value})


@pytest.mark.parametrize("arguments", [{"a": "\ud83d"}, {"\ud83d": 1}, {"a": float("nan")}, {"a": [float("inf")]}])
def test_arguments_that_no_message_holds_are_refused_before_they_are_sent(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments, match="cannot be sent"):
        SchemaCheck({}).arguments("t", arguments)
