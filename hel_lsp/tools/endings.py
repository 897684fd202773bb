"""The line endings of a text, and which of them an edit's lines get.

Here `\\r\\n` and `\\n` end a line; a lone `\\r` is a character like any other.
"""

from __future__ import annotations

from hel_lsp.tools.diff import changed_blocks


def with_lf(text: str) -> str:
    """The text with each `\\r\\n` as `\\n`."""
    # Looking for one character is several times faster than looking for two.
    return text.replace("\r\n", "\n") if "\r" in text else text


def original_offset(text: str, plain_offset: int) -> int:
    """The offset in `text` of an offset in `with_lf(text)`; one at a line end is that of the whole pair."""
    offset = plain_offset
    pairs = text.count("\r\n", 0, offset)
    while offset < plain_offset + pairs:
        previous, offset = offset, plain_offset + pairs
        pairs += text.count("\r\n", max(previous - 1, 0), offset)
    return offset + 1 if offset and text.startswith("\r\n", offset - 1) else offset


def ending_near(text: str, offset: int) -> str | None:
    """The ending of the line at `offset`, of the line before it where it has none, None in a text of one line."""
    end = text.find("\n", offset)
    if end < 0:
        end = text.rfind("\n", 0, offset)
    if end < 0:
        return None
    return final_ending(text[max(end - 1, 0) : end + 1])


def final_ending(text: str) -> str:
    """The line ending that the text ends in, or nothing."""
    return "\r\n" if text.endswith("\r\n") else "\n" if text.endswith("\n") else ""


def with_endings(text: str, start: int, end: int, new: str, ending: str) -> str:
    """`new`, which replaces `start` to `end`, with each `\\n` as it has to be written there.

    Lines that stay keep their ending, as does the last of several changed lines in front of one that stays; others
    take `ending`.
    """
    line_end = text.find("\n", end) + 1 or len(text)
    region, last_ending = text[start:end], final_ending(text[max(line_end - 2, 0) : line_end])
    pairs = region.count("\r\n")
    others = region.count("\n") - pairs if ending == "\r\n" else pairs
    if "\n" not in new or (not others and last_ending in (ending, "")):
        return new.replace("\n", ending)
    head = text[text.rfind("\n", 0, start) + 1 : start]
    tail = text[end : line_end - len(last_ending)]
    *old_lines, last = (head + region + tail).split("\n")
    old_endings = ["\r\n" if line.endswith("\r") else "\n" for line in old_lines] + [last_ending or ending]
    old_lines = [line.removesuffix("\r") for line in old_lines] + [last]
    new_lines = (head + new + tail).split("\n")
    endings: list[str] = []
    i = 0
    for block in changed_blocks(old_lines, new_lines):
        endings += old_endings[i : block.old_start]
        endings += [ending] * (block.new_end - block.new_start)
        if block.old_start < block.old_end and block.new_start < block.new_end:
            endings[-1] = old_endings[block.old_end - 1]
        i = block.old_end
    endings += old_endings[i:]
    parts = new.split("\n")
    return "".join(part + line_end for part, line_end in zip(parts, [*endings[: len(parts) - 1], ""], strict=True))
