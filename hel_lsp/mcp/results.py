"""What a `tools/call` came to, as the model reads it; as lenient as can be, since the side effect has happened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from hel_lsp.mcp.text import harmless, size
from hel_lsp.mcp.validation import SchemaCheck
from hel_lsp.messages import ToolResult


def to_result(raw: Mapping[str, Any], output_schema: Mapping[str, Any] | None) -> ToolResult:
    """The text of a raw result, with a note for whatever could not be read or breaks `output_schema`."""
    content: object = raw.get("content")
    blocks = cast("list[object]", content) if isinstance(content, list) else [] if content is None else [content]
    texts: list[str] = []
    notes: list[str] = []
    for block in blocks:
        text, note = _block(block)
        texts += [] if text is None else [text]
        notes += [note] if note else []
    structured = "structuredContent" in raw
    if structured and not any(text.strip() for text in texts):
        texts = [_as_json(raw["structuredContent"])]
    failed = raw.get("isError") not in (None, False)
    if not failed and output_schema is not None:
        notes += _broken_promise(raw, output_schema)
    text = "\n".join([*texts, *notes])
    return ToolResult(harmless(text) or "(no output)", "failed" if failed else "completed")


def _block(block: object) -> tuple[str | None, str]:
    """A block's text where it has one, and a note that stands for the rest of it."""
    if isinstance(block, str):
        return block, ""
    if not isinstance(block, dict):
        return None, f"[content omitted: {_as_json(block)[:80]}]"
    fields = cast("dict[str, Any]", block)
    kind = str(fields.get("type", "content"))
    if kind == "resource" and isinstance(fields.get("resource"), dict):
        return _resource(cast("dict[str, Any]", fields["resource"]))
    if isinstance(fields.get("text"), str):
        return fields["text"], "" if kind == "text" else f"[the text above is of a block of the type {kind}]"
    if kind == "resource_link":
        return None, f"[resource link: {fields.get('name', '')} {fields.get('uri', '')}]"
    data = fields.get("data")
    if isinstance(data, str):
        return None, f"[{kind} omitted: {fields.get('mimeType', 'type unknown')}, {size(len(data) * 3 // 4)}]"
    return None, f"[{kind} omitted: {size(len(_as_json(fields)))}]"


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "[omitted: nested too deeply]"


def _resource(resource: Mapping[str, Any]) -> tuple[str | None, str]:
    uri = resource.get("uri", "without URI")
    if isinstance(resource.get("text"), str):
        return f"{uri}:\n{resource['text']}", ""
    blob = resource.get("blob")
    length = len(blob) * 3 // 4 if isinstance(blob, str) else 0
    return None, f"[resource omitted: {uri}, {resource.get('mimeType', 'type unknown')}, {size(length)}]"


def _broken_promise(raw: Mapping[str, Any], output_schema: Mapping[str, Any]) -> list[str]:
    if "structuredContent" not in raw:
        return ["[note: the tool declares a structured result and gave none]"]
    faults = SchemaCheck(output_schema).faults(raw["structuredContent"])
    return [f"[note: the result breaks the tool's own output schema: {'; '.join(faults)}]"] if faults else []
