"""Finding tools by words: SQLite's full-text search over names, servers, whole descriptions and parameters.

Words that often mean the same (`remove`, `delete`) count too, but less than what was said.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, cast

from hel_lsp.ports import DeferredTool

WEIGHTS = (3.0, 2.0, 2.0, 1.0, 0.5)
"""What a match counts for in each column: name, server, first line, whole description, parameters."""

MEANT = 0.4
"""What a word that was only meant, and is in the name, counts for, of one that was said."""

_CONSIDERED = 300  # rows of each ranking that are merged

_ROWS = 4_000  # that are ranked for what was said, of tens of thousands
_MEANT_ROWS = 2_000

_DEPTH = 2  # levels of nested parameters that are looked at

_WORDS = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_EMPTY = frozenset(
    _WORDS.findall(
        "a an and are as be by can for i if in is it me my not of or our please that the this to us we when will with "
        "you your"
    )
)

_SAME = """
create add new make insert
delete remove drop erase discard uninstall
update edit change modify alter set
list show all
find search look lookup query
get read fetch retrieve view show see
run execute start launch
stop end cancel abort kill terminate
send post publish submit
move transfer relocate
copy duplicate clone
compare diff difference
save store write remember memory
repo repository
pr pull merge request
dir directory folder
doc document page
db database
k8s kubernetes cluster
ticket issue
image picture photo screenshot
click press tap
chart plot graph diagram
website site web url page
log output
person user member people
message comment reply note
job pipeline workflow build ci
fail failed failure error broken
config configuration setting option
env environment variable
version release tag
time clock date timezone
fill type enter input
count number many
"""

_SYNONYMS: dict[str, list[str]] = {}
for _group in _SAME.split("\n"):
    for _word in _group.split():
        _SYNONYMS.setdefault(_word, []).extend(other for other in _group.split() if other != _word)


class ToolIndex:
    """An index in memory. `build` may run in a thread; a search waits for it."""

    def __init__(self, tools: Iterable[DeferredTool]) -> None:
        self._tools = list(tools)
        self._names = [tool.name for tool in self._tools]
        self._database: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def build(self) -> None:
        with self._lock:
            self._built()

    def search(self, query: str, limit: int) -> Sequence[str]:
        """Names of tools that have words of `query`, best first."""
        words = list(dict.fromkeys(_words(query)))
        words = [word for word in words if word not in _EMPTY] or words
        meant = dict.fromkeys(other for word in words for other in _synonyms(word) if other not in words)
        said = [f'"{word}"' for word in words]
        with self._lock:
            database = self._built()
            scores = dict(_scores(database, *_by_rarity(database, said, _ROWS)))
            named, _ = _by_rarity(database, [f"name : {word}" for word in meant], _MEANT_ROWS)
            for row, score in _scores(database, named):
                scores[row] = scores.get(row, 0.0) + MEANT * score
        ranked = sorted(scores, key=lambda row: (-scores[row], row))
        return [self._names[row] for row in ranked[:limit]]

    def _built(self) -> sqlite3.Connection:
        if self._database is None:
            database = sqlite3.connect(":memory:", check_same_thread=False)
            database.execute(
                "CREATE VIRTUAL TABLE tools USING fts5(name, server, first, description, parameters, "
                "content='', tokenize='porter unicode61')"
            )
            database.execute(f"INSERT INTO tools(tools, rank) VALUES('rank', 'bm25({', '.join(map(str, WEIGHTS))})')")
            rows = ((number, *_row(tool)) for number, tool in enumerate(self._tools))
            statement = (
                "INSERT INTO tools (rowid, name, server, first, description, parameters) VALUES (?, ?, ?, ?, ?, ?)"
            )
            database.executemany(statement, rows)
            self._database = database
            self._tools = []
        return self._database


def _by_rarity(database: sqlite3.Connection, terms: Iterable[str], rows: int) -> tuple[Sequence[str], Sequence[str]]:
    """The rarest terms, which are in about so many rows together, and the others; terms that are nowhere are left out.

    Ranking a row is what takes the time, and the terms that thousands of tools have tell them apart the least.
    """
    count = "SELECT count(*) FROM tools WHERE tools MATCH ?"
    counts = {term: database.execute(count, (term,)).fetchone()[0] for term in terms}
    ordered = sorted(filter(counts.get, counts), key=lambda term: counts[term])
    rare = max(1, bisect_right(list(accumulate(counts[term] for term in ordered)), rows))
    return ordered[:rare], ordered[rare:]


def _scores(
    database: sqlite3.Connection, rare: Sequence[str], common: Sequence[str] = ()
) -> Iterable[tuple[int, float]]:
    """The rows that fit the rare terms best, and how well they do; the common ones count in them."""
    if not rare:
        return ()
    match = f"({_any(rare)}) AND ({_any([*rare, *common])})" if common else _any(rare)
    return database.execute(
        "SELECT rowid, -rank FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT ?", (match, _CONSIDERED)
    )


def _any(terms: Iterable[str]) -> str:
    return " OR ".join(f"({term})" for term in terms)


def _row(tool: DeferredTool) -> tuple[str, ...]:
    own = tool.name.removeprefix(f"mcp__{tool.server}__")
    description = tool.definition.description.strip()
    parameters = " ".join(_parameters(tool.definition.parameters, _DEPTH))
    names = (" ".join(_words(name)) for name in (own, tool.server or ""))
    return (*names, description.partition("\n")[0], description, parameters)


def _parameters(schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Names, descriptions and choices of the parameters, nested ones included."""
    for name, field in _mapping(schema.get("properties")).items():
        fields = _mapping(field)
        yield name
        yield str(fields.get("description", ""))
        choices = fields.get("enum")
        if isinstance(choices, list):
            yield from map(str, cast("list[object]", choices))
        if depth:
            yield from _parameters(fields, depth - 1)


def _words(text: str) -> list[str]:
    """Words in lower case, `camelCase` and `snake_case` taken apart."""
    return [word.lower() for part in _WORDS.findall(text) for word in _HUMP.split(part)]


def _synonyms(word: str) -> Sequence[str]:
    """What the word, or the one that it is a form of, often stands for."""
    for ending in ("", "s", "es", "ing", "ed"):
        stem = word.removesuffix(ending)
        for form in (stem, stem + "e"):
            if form in _SYNONYMS and (stem != word or not ending):
                return _SYNONYMS[form]
    return ()


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
