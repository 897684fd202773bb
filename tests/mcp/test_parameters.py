from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hel_lsp.mcp.parameters import sendable

ODD = st.text(st.sampled_from("$_-.[]/~ aé2"), max_size=3) | st.text(min_size=60, max_size=70)


@given(st.dictionaries(ODD, st.integers()), st.lists(ODD))
def test_every_parameter_has_one_name_of_its_own_that_providers_take(
    properties: dict[str, int], more: list[str]
) -> None:
    required = [*properties, *more]
    sent, renamed = sendable({"type": "object", "properties": properties, "required": required})
    names = sent["properties"]
    assert [name for name in names if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name)] == []
    assert {renamed.get(name, name): value for name, value in names.items()} == properties
    assert [renamed.get(name, name) for name in sent["required"]] == required
    assert {*properties, *more}.isdisjoint(renamed)


@given(st.dictionaries(ODD, st.integers(), min_size=1), st.data())
def test_references_go_to_the_same_parameters_as_before(properties: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(properties)))
    pointer = name.replace("~", "~0").replace("/", "~1")
    reference = {"$ref": f"#/properties/{pointer}/items"}
    sent, renamed = sendable({"properties": {**properties, "points": [{"a": reference}]}, "$defs": {"b": reference}})
    for found in (sent["properties"]["points"][0]["a"], sent["$defs"]["b"]):
        known, items = found["$ref"].removeprefix("#/properties/").split("/")
        assert renamed.get(known.replace("~1", "/").replace("~0", "~"), known) == name
        assert items == "items"


def test_what_can_be_sent_stays_as_it_is() -> None:
    parameters = {"properties": {"a.b-c_D": {}, "x" * 64: {"$ref": "#/properties/a.b-c_D"}}, "required": "none"}
    assert sendable(parameters) == (parameters, {})


def test_also_a_hundred_thousand_names_that_look_alike_are_told_apart() -> None:
    properties = {chr(0x4E00 + number % 20_000) * (1 + number // 20_000): {} for number in range(100_000)}
    sent, renamed = sendable({"properties": properties})
    assert len(sent["properties"]) == len(renamed) == 100_000
