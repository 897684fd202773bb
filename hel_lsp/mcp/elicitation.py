"""Input that a server asks for in the middle of a call: what buttons can answer is asked, the rest is declined.

Imports the SDK's types, so it is imported with `connection`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from mcp.types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult

from hel_lsp.mcp.text import harmless
from hel_lsp.ports import Person

DECLINE, ACCEPT, OPEN, YES, NO = "Decline", "Accept", "Open", "Yes", "No"

_CHOICES = 9  # buttons that still fit into a message
_MESSAGE = 600  # characters of the server's own words


async def answer(server: str, request: ElicitRequestParams, person: Person) -> ElicitResult:
    """The person's answer; no answer is `cancel`, a form that buttons cannot fill is declined and the person told."""
    asked = harmless(request.message)[:_MESSAGE]
    if isinstance(request, ElicitRequestURLParams):
        return await _visit(server, asked, request.url, person)
    choices = _choices(request.requested_schema)
    if choices is None:
        fields = ", ".join(harmless(name) for name in _mapping(request.requested_schema.get("properties")))
        person.tell(
            f"The MCP server {server} asked for input that cannot be given here, so it was declined: {asked} ({fields})"
        )
        return ElicitResult(action="decline")
    values = choices.get(ACCEPT)
    shown = f" ({', '.join(f'{harmless(name)}: {value}' for name, value in values.items())})" if values else ""
    chosen = await person.choose(f"The MCP server {server} asks: {asked}{shown}", (DECLINE, *choices))
    if chosen in choices:
        return ElicitResult(action="accept", content=choices[chosen])
    return ElicitResult(action="decline" if chosen == DECLINE else "cancel")


async def _visit(server: str, asked: str, url: str, person: Person) -> ElicitResult:
    url = harmless(url)
    if urlsplit(url).scheme not in ("http", "https"):
        person.tell(f"The MCP server {server} asked you to open {url}, which is no web page, so it was declined.")
        return ElicitResult(action="decline")
    chosen = await person.choose(f"The MCP server {server} asks you to open {url} : {asked}", (DECLINE, OPEN))
    if chosen == OPEN and await person.open(url):
        return ElicitResult(action="accept")
    return ElicitResult(action="decline" if chosen == DECLINE else "cancel")


def _choices(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """By button the content that it stands for; None where buttons do not do.

    A form that comes filled in can be accepted as it is.
    """
    fields = {name: _mapping(field) for name, field in _mapping(schema.get("properties")).items()}
    if len(fields) == 1:
        ((name, field),) = fields.items()
        options = {harmless(title): value for title, value in _options(field).items()}
        if 0 < len(options) <= _CHOICES and not {DECLINE, ""} & options.keys():
            return {title: {name: value} for title, value in options.items()}
    if all("default" in field for field in fields.values()):
        return {ACCEPT: {name: field["default"] for name, field in fields.items()}}
    return None


def _options(field: Mapping[str, Any]) -> dict[str, Any]:
    """Each title with its value; empty for what is neither yes or no nor one choice."""
    if field.get("type") == "boolean":
        return {YES: True, NO: False}
    values = field.get("enum")
    if isinstance(values, list) and field.get("type", "string") == "string":
        values = [str(value) for value in cast("list[object]", values)]
        names = field.get("enumNames")
        titles = [str(name) for name in cast("list[object]", names)] if isinstance(names, list) else values
        return dict(zip(titles, values, strict=False)) if len(set(titles)) == len(values) else {}
    alternatives = field.get("oneOf")
    if isinstance(alternatives, list):
        parts = [_mapping(part) for part in cast("list[object]", alternatives)]
        return {str(part.get("title", part["const"])): part["const"] for part in parts if "const" in part}
    return {}


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
