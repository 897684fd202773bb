"""Values checked against the schema that a server wrote for them, in time that the server cannot stretch.

jsonschema would run the server's regular expressions and follow its references for as long as they take, in the event
loop. A thread would not help: `re` keeps all others out while it searches, and no thread can be ended. So a check has a
budget of processor time, and what could overrun it in one step is not tried. There the check ends, and what it has not
found by then is left to the server, which checks its arguments itself.

jsonschema is imported when the first value is checked.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from hel_lsp.errors import InvalidArguments
from hel_lsp.mcp.schema import LEVELS, nested_deeper, oversize, parts

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

SECONDS = 0.3
"""Processor time of one check; the slowest of 855 tools of public servers needs a tenth of it."""

_SHOWN = 5  # faults that one message names
_SHORT = 200  # characters of one fault: some repeat the whole argument
_PARTS = 100_000  # parts of a value above which going through them once takes too long
_STEPS = 10**6  # of a search, which are milliseconds
_PATTERN = 200  # characters
_LEFT_TO_THE_SERVER = {"patternProperties", "unevaluatedItems", "unevaluatedProperties"}

# One character or class, and how often. Without groups no repetition is repeated.
_ONE = r"(?:[^\\\[\](){}|*+?]|\\[dDsSwW]|\\[^A-Za-z0-9]|\[(?:[^\[\]\\]|\\.)+\])"
_PIECE = re.compile(_ONE + r"(?:\{\d{1,3}\}|(\{\d{1,3},\d{0,3}\}|[*+?]))?")
_FLAT = re.compile(f"(?:{_PIECE.pattern})*")


class _Undecided(Exception):
    """The check ends here: whether the rest fits is for the server to say."""


class SchemaCheck:
    """A schema that values are checked against, by the draft it names, else 2020-12.

    Nothing is fetched for references. A schema that cannot be used (invalid, with references that lead nowhere, too
    large, or with a pattern that Python does not read) lets everything through: the server is the one that decides.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._budget = _Budget()
        self._validator = _validator(schema, self._budget)

    def faults(self, value: Any) -> list[str]:
        """What does not fit, in words, at most five."""
        return [_in_words(error) for error, _ in zip(self._errors(value), range(_SHOWN), strict=False)]

    def arguments(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments to send: without an explicit null for what may be absent and may not be null.

        Raises InvalidArguments.
        """
        if nested_deeper(arguments, LEVELS):
            raise InvalidArguments(
                f"The arguments of {tool} are nested more than {LEVELS} levels deep, so it was not called."
            )
        try:
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            # Half of a character, with which the SDK would end the connection, or a number that JSON does not have.
            raise InvalidArguments(f"The arguments of {tool} cannot be sent, so it was not called: {error}") from error
        required = self._schema.get("required")
        needed = cast("list[object]", required) if isinstance(required, list) else []
        nulls = {name for name, value in arguments.items() if value is None and name not in needed}
        if nulls:
            refused = {error.path[0] for error in self._errors(arguments) if len(error.path) == 1}
            arguments = {name: value for name, value in arguments.items() if name not in nulls & refused}
        if faults := self.faults(arguments):
            raise InvalidArguments(f"The arguments do not fit {tool}, so it was not called: {'; '.join(faults)}")
        return arguments

    def _errors(self, value: Any) -> Iterator[ValidationError]:
        if self._validator is None or parts(value, _PARTS) > _PARTS:
            return
        self._budget.begin()
        try:
            yield from self._validator.iter_errors(value)
        except (_Undecided, *_unusable()):
            return


def _unusable() -> tuple[type[Exception], ...]:
    """What jsonschema raises for schemas that its own check of them lets pass."""
    from jsonschema.exceptions import UnknownType
    from referencing.exceptions import Unresolvable

    return Unresolvable, UnknownType, re.error, RecursionError, ArithmeticError, AttributeError, ValueError


class _Budget:
    """Processor time of this thread, which a busy machine does not use up."""

    def __init__(self) -> None:
        self._end = 0.0

    def begin(self) -> None:
        self._end = time.thread_time() + SECONDS

    def check(self) -> None:
        if time.thread_time() > self._end:
            raise _Undecided


def _validator(schema: Mapping[str, Any], budget: _Budget) -> Validator | None:
    from jsonschema import Draft202012Validator, validators
    from jsonschema_specifications import REGISTRY
    from referencing.jsonschema import EMPTY_REGISTRY

    try:
        draft = {"$schema": schema["$schema"]} if isinstance(schema.get("$schema"), str) else {}
        named = validators.validator_for(draft, default=Draft202012Validator)
        checks = {keyword: _bounded(keyword, check, budget) for keyword, check in named.VALIDATORS.items()}
        kind = cast("type[Validator]", cast("Any", validators).extend(named, checks))
        budget.begin()
        if oversize(schema) or not kind(kind.META_SCHEMA, registry=REGISTRY).is_valid(schema):
            return None
    except (_Undecided, *_unusable()):
        return None
    return kind(schema, registry=EMPTY_REGISTRY)


def _bounded(keyword: str, check: Callable[..., Any], budget: _Budget) -> Callable[..., Any]:
    """`check` of one keyword, not begun where the budget is used up or where it could take long by itself."""

    def bounded(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
        budget.check()
        if keyword in _LEFT_TO_THE_SERVER or (keyword == "additionalProperties" and "patternProperties" in schema):
            raise _Undecided
        if keyword == "pattern" and isinstance(instance, str) and not _quick(value, instance):
            raise _Undecided
        yield from check(validator, value, instance, schema) or ()

    return _unique_items if keyword == "uniqueItems" else bounded


def _unique_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """jsonschema compares each item with each other one; a number and its like in the other notation pass here."""
    from jsonschema.exceptions import ValidationError

    if value and isinstance(instance, list):
        items = [json.dumps(item, sort_keys=True) for item in cast("list[object]", instance)]
        if len(set(items)) < len(items):
            yield ValidationError("has non-unique elements")


def _quick(pattern: str, text: str) -> bool:
    """Whether a search for it takes few steps for certain: it has no groups, and few places that match more or less."""
    if len(pattern) > _PATTERN or not _FLAT.fullmatch(pattern):
        return False
    places = sum(match[1] is not None for match in _PIECE.finditer(pattern))
    return (len(text) + 1) ** (places + (1 if pattern.startswith("^") else 2)) <= _STEPS


def _in_words(error: ValidationError) -> str:
    message = error.message if len(error.message) <= _SHORT else error.message[:_SHORT] + "…"
    place = ".".join(str(part) for part in error.absolute_path)
    return f"{place}: {message}" if place else message
