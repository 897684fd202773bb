"""Turning JSON into protocol types while clients get details wrong.

A client that sends `trace: "compact"` deserves an answer: what does not fit an optional field is left out.
"""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Iterator
from typing import Any, cast

from cattrs import BaseValidationError, Converter
from cattrs.errors import AttributeValidationNote, IterableValidationNote

logger = logging.getLogger(__name__)

ROUNDS = 20

Path = tuple[str | int, ...]


def structure_leniently(converter: Converter, data: Any, target: Any) -> Any:
    """`data` as a `target`, without the parts that do not fit it.

    Raises the converter's own error when what is left does not fit either, because a required field is missing.
    """
    for _ in range(ROUNDS):
        try:
            return converter.structure(data, target)
        except BaseValidationError as error:
            data = copy.deepcopy(data)
            dropped = [path for path in sorted(faults(error), key=str, reverse=True) if _drop(data, path)]
            if not dropped:
                raise
            logger.warning("ignored what does not fit %s: %s", target, ", ".join(spell(path) for path in dropped))
    return converter.structure(data, target)


def faults(error: BaseException, path: Path = ()) -> Iterator[Path]:
    """Where in the JSON the faults are, as keys and indexes from the outside in."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            path = (*path, _json_name(note.name))
        elif isinstance(note, IterableValidationNote):
            path = (*path, note.index)
    if isinstance(error, BaseValidationError):
        for inner in cast(tuple[BaseException, ...], error.exceptions):
            yield from faults(inner, path)
    else:
        yield path


def spell(path: Path) -> str:
    """A path as people write it: `arguments[0].uri`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _drop(data: Any, path: Path) -> bool:
    """Remove the value at `path`, or what holds it when it is not there; False for the outermost value."""
    holders = [data]
    for part in path:
        try:
            holders.append(holders[-1][part])
        except (KeyError, IndexError, TypeError):
            break
    depth = len(holders) - 1
    if depth == 0:
        return False
    del holders[depth - 1][path[depth - 1]]
    return True


def _json_name(attribute: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), attribute.rstrip("_"))
