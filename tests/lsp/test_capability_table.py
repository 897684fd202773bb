"""docs/editors/README.md says what really happens in each editor."""

from __future__ import annotations

from tests.lsp import capability_table


async def test_the_capability_table_is_what_the_server_does_in_each_client() -> None:
    _, written, _ = capability_table.page()
    assert written == await capability_table.table(), "`make table` writes it"
