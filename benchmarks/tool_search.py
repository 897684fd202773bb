"""How well tools are found by words: recall and rank over catalogues of real servers, by kind of query.

    python -m benchmarks.tool_search FOLDER

FOLDER holds one JSON file a server (`{"server": …, "tools": […]}`, as `tools/list` gives them) and `queries.jsonl`, a
query a line: `{"query": …, "accept": ["server/tool", …], "kind": …}`. A query is found at k when one of the tools that
would do is among the first k; queries that no tool suits are left out. Method and results: docs/search.md.

Below the table by kind: the same without synonyms, and with what can be tuned (the weights of the columns and of
synonyms) chosen anew for each fifth of the queries on the other four fifths, split by the server that is wanted. Then
the time to index the tools, repeated to 30,000, and of a query in them, in CPU time: what else the machine does is
not counted.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

from hel_lsp.mcp import search
from hel_lsp.mcp.catalogue import Listing, build_catalogue, inspect_list
from hel_lsp.mcp.search import ToolIndex
from hel_lsp.ports import DeferredTool

AT = (3, 5, 18)
MANY = 30_000
FOLDS = 5
GRID = list(product((1.0, 3.0, 6.0), (1.0, 2.0), (1.0, 2.0, 4.0), (0.5, 1.0), (0.2, 0.4, 0.8)))
"""Weights of name, server, first line and parameters, beside 1 for the description, and that of synonyms."""

Query = dict[str, Any]
Places = list[int | None]


def catalogue(folder: Path) -> dict[str, DeferredTool]:
    """Every tool of the folder by `server/tool`."""
    listings: list[Listing] = []
    for file in sorted(folder.glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        tools, _ = inspect_list(content["tools"], ["*"], [])
        listings.append(Listing(content["server"], tools))
    offered = build_catalogue(listings, "hash").tools.values()
    return {f"{one.tool.server}/{one.origin.name}": one.tool for one in offered}


def ranks(index: ToolIndex, tools: dict[str, DeferredTool], queries: Iterable[Query]) -> Places:
    """For each query the place, counted from 1, of the first tool that would do; None when it is not among 50."""
    found: Places = []
    for query in queries:
        names = index.search(query["query"], 50)
        wanted = {tools[name].name for name in query["accept"] if name in tools}
        found.append(next((place for place, name in enumerate(names, 1) if name in wanted), None))
    return found


def report(kind: str, places: Places) -> None:
    recalls = [sum(place is not None and place <= k for place in places) / len(places) for k in AT]
    print(f"{kind:20} {len(places):4} " + " ".join(f"{value:8.2f}" for value in (*recalls, reciprocal(places))))


def reciprocal(places: Places) -> float:
    """The mean reciprocal rank."""
    return statistics.mean(1 / place if place else 0 for place in places)


def quality(tools: dict[str, DeferredTool], queries: Sequence[Query]) -> None:
    index = ToolIndex(tools.values())
    print(f"{'kind':20} {'n':>4} " + " ".join(f"{name:>8}" for name in (*(f"at {k}" for k in AT), "MRR")))
    suited = [query for query in queries if query["accept"]]
    for kind in dict.fromkeys(query["kind"] for query in suited):
        report(kind, ranks(index, tools, [query for query in suited if query["kind"] == kind]))
    report("all", ranks(index, tools, suited))
    print()
    report("without synonyms", tuned(tools, suited, search.WEIGHTS, 0.0))
    report("tuned on the others", held_out(tools, suited))


def tuned(tools: dict[str, DeferredTool], queries: Sequence[Query], weights: tuple[float, ...], meant: float) -> Places:
    """The places with other weights than those that are shipped."""
    shipped = search.WEIGHTS, search.MEANT
    search.WEIGHTS, search.MEANT = weights, meant
    try:
        return ranks(ToolIndex(tools.values()), tools, queries)
    finally:
        search.WEIGHTS, search.MEANT = shipped


def held_out(tools: dict[str, DeferredTool], queries: Sequence[Query]) -> Places:
    """Each query's place with the weights that are best for the queries about the servers of the other folds."""
    servers = sorted({_server(query) for query in queries})
    tried = [
        tuned(tools, queries, (name, server, first, 1.0, parameters), meant)
        for name, server, first, parameters, meant in GRID
    ]
    places: Places = []
    for fold in range(FOLDS):
        own = [servers.index(_server(query)) % FOLDS == fold for query in queries]
        others = [[place for place, mine in zip(one, own, strict=True) if not mine] for one in tried]
        best = max(range(len(tried)), key=lambda number: reciprocal(others[number]))
        places += [place for place, mine in zip(tried[best], own, strict=True) if mine]
    return places


def _server(query: Query) -> str:
    return query["accept"][0].partition("/")[0]


def speed(tools: dict[str, DeferredTool], queries: Sequence[Query]) -> None:
    many = [
        DeferredTool(f"{tool.name}_{copy}", tool.server, tool.definition)
        for copy in range(MANY // len(tools) + 1)
        for tool in tools.values()
    ][:MANY]
    began = process_time()
    index = ToolIndex(many)
    index.build()
    built = process_time() - began
    times: list[float] = []
    for query in queries:
        began = process_time()
        index.search(query["query"], 18)
        times.append(process_time() - began)
    print(
        f"\n{len(many)} tools: indexed in {built:.2f} s of CPU time; a query takes "
        f"{statistics.median(times) * 1000:.1f} ms in the median, {max(times) * 1000:.1f} ms at the most"
    )


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    tools = catalogue(folder)
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    print(f"{len(tools)} tools, {len(queries)} queries\n")
    quality(tools, queries)
    speed(tools, queries)


if __name__ == "__main__":
    main()
