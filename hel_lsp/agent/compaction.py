"""Compaction: the older part of a conversation gives way to a summary of it, before the model's context is full.

The largest old results are shortened first; where that is not enough, the model is asked for a summary under fixed
headings. Either the whole of it succeeds or the history stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from hel_lsp.agent.session import Session
from hel_lsp.agent.skills import find
from hel_lsp.errors import ModelError, PromptTooLong, ToolError
from hel_lsp.messages import AssistantMessage, Message, ToolDefinition, ToolMessage, Usage, UserMessage
from hel_lsp.ports import Model, ModelReply, ModelRequest
from hel_lsp.settings import ModelSettings

FULL = 0.8
"""The part of the context, less the room for the answer, at which a compaction starts."""

MOST_ANSWER = 0.25
"""The part of the context that the answer is given room for at most, whatever `model.maxOutputTokens` says."""

NEWEST = 0.16
"""The part of the conversation that stays word for word."""

LARGE_RESULT = 8_000
SMALL_RESULT = 1_000
"""Bytes above which an old result is shortened: at first, and when the provider does not take the rest."""

SKILL_TOKENS = 5_000
ALL_SKILL_TOKENS = 25_000
"""What is put back of one skill's instructions, and of all."""

REQUEST = """\
The conversation is about to be cut: what you write now replaces everything above. Write a summary to go on from, \
under exactly these headings, with "none" where there is nothing:

## Goal
## Decisions
## Files and edits
## Findings
## Open work
## Constraints
## Next step

Keep paths, names, numbers and the user's own wishes exact. Be short. Call no tool."""

HEAD = "This summary stands in for the conversation so far:"

GO_ON = "I have read the summary and go on from there."

PAUSE = "[A summary is needed before this can go on.]"
"""What the assistant says between a call's result and the request for a summary: providers want it to speak first."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """Estimated tokens of the next request; where `before` equals `after`, `reason` says why nothing was done."""

    before: int
    after: int
    reason: str = ""
    usage: Usage = field(default_factory=Usage)


# ------------------------------------------------------------------ how much there is


def tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> int:
    """An estimate: four bytes a token."""
    size = sum(len(_written(message).encode("utf-8", "surrogatepass")) for message in messages)
    for tool in tools:
        size += len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters))
    return size // 4


def fill(session: Session, tools: Sequence[ToolDefinition]) -> int:
    """Tokens of the next request: what the provider counted, and an estimate for what came since."""
    if session.counted is None:
        return tokens([session.system, *session.history], tools)
    counted, messages = session.counted
    return counted + tokens(session.history[messages:])


def limit(settings: ModelSettings) -> int:
    """Tokens of a request at which the conversation is compacted."""
    answer = min(settings.max_output_tokens, settings.context_window * MOST_ANSWER)
    return int((settings.context_window - answer) * FULL)


def _written(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        return message.text + message.reasoning + "".join(call.name + call.arguments for call in message.tool_calls)
    return message.text


# ------------------------------------------------------------------ doing it


async def compact(
    session: Session, model: Model, tools: Sequence[ToolDefinition], target: int | None = None
) -> Compaction:
    """Make the conversation smaller; with a `target` of tokens, shortened results alone will do where they reach it.

    What the model does not deliver is a reason to leave everything as it is, and never an error.
    """
    history = session.history
    cut = _cut(history)
    old, kept = history[:cut], history[cut:]
    before = tokens([session.system, *history], tools)
    if not old:
        return Compaction(before, before, "there is nothing yet that could be left out")
    allowed = 0 if target is None else target - fill(session, tools) + tokens(old)
    shorter = _shortened(old, allowed, LARGE_RESULT)
    usage, reason = Usage(), ""
    if shorter != old and tokens(shorter) <= allowed:
        session.replace([*shorter, *kept])
    else:
        try:
            reply = await _summary(session, model, tools, old, shorter)
        except ModelError as error:
            reason = error.message
        else:
            usage, reason = reply.usage, _fault(reply, old)
            if not reason:
                session.replace([*_summarised(session, reply.text, history, kept), *kept])
    after = tokens([session.system, *session.history], tools)
    session.log.write(
        "compaction",
        before=before,
        after=after,
        kept=len(kept),
        reason=reason or None,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )
    return Compaction(before, after, reason, usage)


def _cut(history: Sequence[Message]) -> int:
    """Where the part begins that stays: NEWEST of the conversation or a little more, and never past a new prompt.

    Only where both parts are valid: not between a call and its result, and not right after a prompt.
    """
    places = [
        index
        for index, message in enumerate(history)
        if isinstance(message, UserMessage)
        or (isinstance(message, AssistantMessage) and index and not isinstance(history[index - 1], UserMessage))
    ]
    if history and not isinstance(history[-1], UserMessage):
        places.append(len(history))
    whole = tokens(history)
    for number in range(len(places) - 1, -1, -1):
        share = tokens(history[places[number] :])
        if share >= whole * NEWEST:
            # One long message may be most of the conversation: then rather less stays than hardly anything goes.
            too_much = share > whole / 2 and number + 1 < len(places)
            return places[number + 1] if too_much else places[number]
    return 0


def _shortened(old: Sequence[Message], allowed: int, size: int) -> list[Message]:
    """`old` with results of more than `size` bytes cut to head and tail, the largest first, until it is `allowed`."""
    messages = list(old)
    surplus = tokens(messages) - allowed
    large = [(len(message.text), index) for index, message in enumerate(messages) if isinstance(message, ToolMessage)]
    for length, index in sorted(large, reverse=True):
        message = messages[index]
        if surplus <= 0 or len(message.text.encode("utf-8", "surrogatepass")) <= size:
            continue
        part = size // 4
        note = f"\n[… {length - 2 * part} characters of this old result were left out …]\n"
        messages[index] = replace(message, text=message.text[:part] + note + message.text[-part:])
        surplus -= tokens([message]) - tokens([messages[index]])
    return messages


async def _summary(
    session: Session, model: Model, tools: Sequence[ToolDefinition], old: Sequence[Message], shorter: Sequence[Message]
) -> ModelReply:
    """The model's summary of `old`, of which it reads `shorter`. Raises ModelError."""
    asked = (UserMessage(REQUEST),)
    if not isinstance(old[-1], AssistantMessage):
        asked = (AssistantMessage(PAUSE), *asked)
    try:
        return await _reply(model, ModelRequest((session.system, *shorter, *asked), tools))
    except PromptTooLong:
        shortest = _shortened(old, 0, SMALL_RESULT)
        return await _reply(model, ModelRequest((session.system, *shortest, *asked), tools))


async def _reply(model: Model, request: ModelRequest) -> ModelReply:
    reply: ModelReply | None = None
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, ModelReply):
                reply = event
    assert reply is not None, "a model's stream ends with a ModelReply or an error"
    return reply


def _fault(reply: ModelReply, old: Sequence[Message]) -> str:
    """Why a summary is rejected; empty where it is not."""
    if reply.tool_calls:
        return "the model called a tool instead of writing a summary"
    if reply.finish == "length":
        return "the summary was cut off at the output limit"
    if reply.finish == "refusal" or not reply.text.strip():
        return "the model wrote no summary"
    if tokens([UserMessage(reply.text)]) >= tokens(old):
        return "the summary is longer than what it would replace"
    return ""


def _summarised(session: Session, text: str, history: Sequence[Message], kept: Sequence[Message]) -> list[Message]:
    """What takes the place of the old part: the summary and the skills, so that roles go on taking turns."""
    parts = [HEAD, text.strip(), *_skills(session, kept)]
    messages: list[Message] = [UserMessage("\n\n".join(parts), "(Compacted.)\n\n" + text.strip())]
    following = kept[0] if kept else None
    if isinstance(following, UserMessage) or (following is None and isinstance(history[-1], AssistantMessage)):
        messages.append(AssistantMessage(GO_ON))
    return messages


def _skills(session: Session, kept: Sequence[Message]) -> list[str]:
    """The instructions of loaded skills, the latest first, less those that `kept` still holds."""
    parts: list[str] = []
    room = ALL_SKILL_TOKENS
    for name in reversed(session.loaded_skills):
        skill = find(session.skills, name)
        try:
            body = skill.body() if skill is not None else ""
        except ToolError:
            continue  # its file is gone
        if not body or any(isinstance(message, ToolMessage) and message.text == body for message in kept):
            continue
        data = body.encode("utf-8", "surrogatepass")[: 4 * min(SKILL_TOKENS, room)]
        room -= len(data) // 4
        if data:
            parts.append(f"Skill {name}, loaded before:\n\n{data.decode('utf-8', 'ignore')}")
    return parts
