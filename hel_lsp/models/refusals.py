"""From an endpoint's error answers to errors that say what to check."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from hel_lsp.errors import ModelRefused, PromptTooLong
from hel_lsp.models.config import Endpoint
from hel_lsp.models.retry import TryAgain, retry_after

MAX_MESSAGE = 600
"""Characters of a provider's message that are shown."""

_TOO_LONG = re.compile(
    r"context[ _-](length|window|size|limit)|maximum (context|prompt|input)|prompt is too long|too many (input )?tokens"
    r"|exceeds? .{0,40}\btokens?\b.{0,40}\bcontext",
    re.IGNORECASE,
)

_PASSING = re.compile(r"\b(overloaded|api|rate_limit|timeout)_error\b")
"""Types of errors inside a stream that may be gone at the next try."""

_SPEAKING = ("error", "message", "detail", "msg", "code", "type", "param", "loc")


@dataclass(eq=False)
class ErrorAnswer(Exception):
    """An answer that is not 2xx: the status, the start of its body, and what of its headers matters.

    `location` is where it redirects to, `redirected` the server that answered when that was not the endpoint.
    """

    status: int
    body: str
    retry_after: str | None = None
    location: str = ""
    redirected: str = ""


def refusal(answer: ErrorAnswer, endpoint: Endpoint) -> TryAgain | ModelRefused:
    """The error to raise for `answer`; 429 and 5xx may pass, everything else is final."""
    status, body = answer.status, _parsed(_hidden(answer.body, endpoint))
    said, complaint = provider_message(body), named(body)
    told = f": {said}" if said else "."
    if (status == 429 and "insufficient_quota" not in complaint) or status >= 500:
        what = "asks for patience" if status == 429 else "has a fault"
        wait = retry_after(answer.retry_after, datetime.now(UTC))
        return TryAgain(_sentence(f"{endpoint.shown} {what} ({status}){told}"), wait)
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(complaint)):
        return PromptTooLong(_sentence(f"The conversation is too long for {endpoint.model} ({status}){told}"))
    refused = _sentence(f"{endpoint.shown} refused the request ({status}){told}")
    return ModelRefused(f"{refused} {_check(answer, endpoint)}".rstrip())


def stream_error(error: object, endpoint: Endpoint) -> TryAgain | ModelRefused:
    """The error to raise for an `error` object inside a stream that had begun well."""
    said = _hidden(provider_message(error), endpoint) or "no reason given"
    complaint = named(error)
    ended = _sentence(f"{endpoint.shown} ended the reply with an error: {said}")
    if _PASSING.search(complaint):
        return TryAgain(ended)
    return PromptTooLong(ended) if _TOO_LONG.search(complaint) else ModelRefused(ended)


def complaint(answer: ErrorAnswer) -> str:
    """What a 400 or 422 says about the request, the names of fields included; empty for other statuses."""
    return named(_parsed(answer.body)) if answer.status in (400, 422) else ""


def provider_message(body: object, depth: int = 4) -> str:
    """What the provider says to people, from any of the shapes that are around."""
    if isinstance(body, str):
        return _short(body)
    if isinstance(body, list):
        body = cast("list[object]", body)[0] if body else None
    if not isinstance(body, dict) or depth == 0:
        return ""
    fields = cast("Mapping[str, Any]", body)
    found = (provider_message(fields.get(name), depth - 1) for name in ("error", "message", "detail", "msg", "code"))
    return next(filter(None, found), "")


def named(body: object, depth: int = 4) -> str:
    """The message with the codes and the fields that it names, and without the request that some answers repeat."""
    if isinstance(body, str):
        return _short(body)
    if depth == 0:
        return ""
    if isinstance(body, list):
        return " ".join(named(item, depth - 1) for item in cast("list[object]", body))
    if isinstance(body, dict):
        fields = cast("Mapping[str, Any]", body)
        return " ".join(named(fields.get(name), depth - 1) for name in _SPEAKING)
    return ""


def _parsed(body: str) -> object:
    """The JSON in `body`, else its text without markup."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return re.sub(r"<[^<>]{0,200}>", " ", body)


def _hidden(text: str, endpoint: Endpoint) -> str:
    """`text` without the key: some providers repeat it in their message."""
    return text.replace(endpoint.api_key, "[key]") if endpoint.api_key else text


def _short(text: str) -> str:
    text = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else text + "."


def _check(answer: ErrorAnswer, endpoint: Endpoint) -> str:
    if answer.redirected:
        return f"The request was redirected to {answer.redirected}, which does not get the key: check model.baseUrl."
    match answer.status:
        case 300 | 301 | 302 | 303 | 307 | 308:
            where = f" It points to {_short(answer.location)}." if answer.location else ""
            return f"Check model.baseUrl.{where}"
        case 401 | 403 if not endpoint.api_key:
            return f"No key was sent: set the environment variable {endpoint.key_variable}."
        case 401 | 403:
            return f"Check the key in the environment variable {endpoint.key_variable} and what it may use."
        case 402 | 429:
            return f"Check the account that the key in {endpoint.key_variable} belongs to."
        case 404 | 405:
            return f'Check model.baseUrl (up to and including /v1) and model.name ("{endpoint.model}").'
        case 400 | 422:
            return f'Check model.name ("{endpoint.model}"), model.maxOutputTokens and model.extraBody.'
        case _:
            return ""
