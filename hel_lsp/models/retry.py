"""When a request is sent again, and after how long."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from hel_lsp.errors import ModelUnavailable, StreamBroken
from hel_lsp.ports import Retrying, StreamEvent, TextDelta

MAX_TRIES = 5
FIRST_WAIT = 0.5
LONGEST_WAIT = 60.0


class TryAgain(Exception):
    """A request that failed before the first byte of its reply, or by an error in its stream, in a way that may pass.

    `wait` is the seconds that the endpoint asked for, None where it did not say.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait


async def with_retries(
    ask: Callable[[], AsyncGenerator[StreamEvent, None]], sleep: Callable[[float], Awaitable[object]]
) -> AsyncGenerator[StreamEvent, None]:
    """The events of `ask`, which is called again after TryAgain and once after StreamBroken, but not after any text.

    Each further try is announced by a `Retrying`. Raises ModelUnavailable after the last one.
    """
    failures = 0
    broken = False
    shown = False
    while True:
        try:
            async with aclosing(ask()) as events:
                async for event in events:
                    shown = shown or isinstance(event, TextDelta)
                    yield event
            return
        except TryAgain as failure:
            if shown:
                raise ModelUnavailable(failure.reason) from failure
            failures += 1
            if failures == MAX_TRIES:
                raise ModelUnavailable(f"{failure.reason} Gave up after {MAX_TRIES} tries.") from failure
            retry = Retrying(failure.reason, wait_before(failures, failure.wait))
        except StreamBroken as error:
            if shown or broken:
                raise
            broken = True
            retry = Retrying(error.message, 0.0)
        yield retry
        await sleep(retry.delay)


def wait_before(failures: int, asked: float | None) -> float:
    """Seconds before the next try: what the endpoint asked for, else a wait that doubles; never over a minute."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2 ** (failures - 1) if asked is None else asked)


def retry_after(value: str | None, now: datetime) -> float | None:
    """The seconds of a `Retry-After` header, a number or a date; None for a date that is over and for garbage."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        seconds = (date - now).total_seconds()
        return seconds if seconds > 0 else None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
