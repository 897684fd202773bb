"""Time of the edit engine in texts of 1 and 10 MB, and how it grows between them.

Run: `python benchmarks/edit_engine.py`. Every time is the processor's, the best of seven runs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

from hel_lsp.errors import MatchError
from hel_lsp.messages import FileEdit
from hel_lsp.tools.edit import added_and_removed, replace_once, revert, unified_diff
from hel_lsp.tools.lines import offset_to_position, position_to_offset

LINE = "    value[{:06d}] = compute(argument, other)  {}\n"
PATH = Path("large.py")


def text_of(lines: int, newline: str, remark: str) -> str:
    return "".join(LINE.format(number, remark) for number in range(lines)).replace("\n", newline)


def best(run: Callable[[], object]) -> float:
    def once() -> float:
        start = process_time()
        run()
        return process_time() - start

    return min(once() for _ in range(7)) * 1_000


def cases(text: str, lines: int, remark: str) -> dict[str, Callable[[], object]]:
    """What is measured; the place is near the end, where most of the text has to be passed."""
    search = f"    value[{lines - 3:06d}] = compute(argument, other)"
    block = LINE.format(lines - 3, remark) + LINE.format(lines - 2, remark)
    edit = replace_once(PATH, text, search, "    first()\n    second()")
    typed = "# typed since\n" + edit.after + "# and here\n"
    line, character = offset_to_position(text, edit.start, "utf-16")

    return {
        "replace_once": lambda: replace_once(PATH, text, search, "    first()\n    second()"),
        "replace_once, two lines": lambda: replace_once(PATH, text, block, "    first()\n    second()\n"),
        "replace_once, no match": lambda: not_found(text, search.replace("    ", "\t")),
        "offset_to_position": lambda: offset_to_position(text, edit.start, "utf-16"),
        "position_to_offset": lambda: position_to_offset(text, line, character, "utf-16"),
        "counts and diff": lambda: (added_and_removed(edit), unified_diff(edit, "large.py")),
        "revert": lambda: revert(edit, typed),
    }


def not_found(text: str, search: str) -> FileEdit | None:
    try:
        return replace_once(PATH, text, search, "x")
    except MatchError:
        return None


def main() -> None:
    print(f"{'':12}{'':26}{'1 MB':>9}{'10 MB':>9}{'ratio':>8}   (ms)")
    for name, newline, remark in (("LF", "\n", "# x"), ("CRLF", "\r\n", "# x"), ("CRLF, emoji", "\r\n", "# 😀")):
        small, large = (text_of(lines, newline, remark) for lines in (20_000, 200_000))
        small_cases, large_cases = cases(small, 20_000, remark), cases(large, 200_000, remark)
        for case in small_cases:
            one, ten = best(small_cases[case]), best(large_cases[case])
            print(f"{name:12}{case:26}{one:9.2f}{ten:9.2f}{ten / one:8.1f}")


if __name__ == "__main__":
    main()
