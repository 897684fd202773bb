"""Whether a prepared call may run: the access level, rules, hooks, what the user granted before, and the question."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from hel_lsp import state
from hel_lsp.messages import AccessLevel, Approval, ToolCall, ToolResult
from hel_lsp.permissions import question
from hel_lsp.permissions.access import verdict
from hel_lsp.permissions.dangerous import why_asked
from hel_lsp.permissions.hooks import HookCall
from hel_lsp.permissions.project import Policy
from hel_lsp.ports import Approver, Prepared, RunLog

_ANSWERS: dict[str | None, Approval] = {
    question.ALLOW_ONCE: "allow_once",
    question.ALLOW_SESSION: "allow_session",
    question.ALLOW_ALWAYS: "allow_always",
}

Judge = Literal["access", "rule", "hook", "grant", "user"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """`allowed`, by whom and on what grounds; `reason` is for the model where the call may not run.

    `decision` is the user's answer, None where nobody was asked.
    """

    allowed: bool
    by: Judge
    grounds: str
    reason: str = ""
    decision: Approval | None = None


class Grants:
    """What the user allowed beyond one call: for this session in memory, for this workspace in the state folder.

    Nothing is ever granted by a file of the project itself.
    """

    def __init__(self, folder: Path, root: Path | None) -> None:
        self._session: set[str] = set()
        self._file = folder / "grants.json"
        self._root = str(root or "")

    def cover(self, scope: str) -> bool:
        return scope in self._session or scope in self._kept(state.read_json(self._file))

    def add(self, scope: str, approval: Approval) -> None:
        if approval == "allow_session":
            self._session.add(scope)
        elif approval == "allow_always":
            records = state.read_json(self._file)
            records[self._root] = sorted({*self._kept(records), scope})
            state.write_json(self._file, records)

    def _kept(self, records: dict[str, Any]) -> list[str]:
        """This workspace's part of the file; nothing where somebody has damaged it."""
        kept: object = records.get(self._root)
        return [str(scope) for scope in cast("list[object]", kept)] if isinstance(kept, list) else []


@dataclass
class Gate:
    """Rules on the calls of one turn in the workspace folder `root`; `policy` is what its own files say."""

    session: str
    turn: int
    level: AccessLevel
    grants: Grants
    approver: Approver
    log: RunLog
    root: Path | None
    policy: Policy = field(default_factory=Policy)

    async def rule(self, call: ToolCall, prepared: Prepared) -> Ruling:
        """Refuse, let the hooks see it, ask where that is due: in this order, and what is refused runs no hook."""
        ruling = await self._rule(call, prepared)
        self.log.write(
            "decision",
            turn=self.turn,
            tool=call.name,
            scope=prepared.scope,
            allowed=ruling.allowed,
            by=ruling.by,
            grounds=ruling.grounds,
        )
        return ruling

    async def review(self, call: ToolCall, prepared: Prepared, result: ToolResult) -> ToolResult:
        """The result of a call that has run, as its hooks leave it."""
        hooks = self.policy.hooks
        return result if hooks is None else await hooks.after(self._told(call, prepared), result)

    async def _rule(self, call: ToolCall, prepared: Prepared) -> Ruling:
        found = self.policy.rules.decide(call.name, prepared, self.root)
        kind, rule = (found[0], found[1].text) if found is not None else (None, "")
        if kind == "deny":
            reason = f"Refused: the rule {rule} of the project's permissions denies this call. Nothing was changed."
            return Ruling(False, "rule", rule, reason)
        if verdict(self.level, prepared.access) == "refuse":
            reason = f"Refused: access is {self.level}, and {call.name} would {_does(prepared)}."
            return Ruling(False, "access", self.level, reason)
        hooks = self.policy.hooks
        stop = await hooks.before(self._told(call, prepared)) if hooks is not None else None
        if stop is not None:
            reason = f"Not run: a hook that checks calls {stop.reason}." if stop.broken else stop.reason
            return Ruling(False, "hook", stop.hook.command, reason)
        why = why_asked(prepared.command, self.root) if prepared.command is not None else None
        if kind == "ask":
            why = f"the rule {rule} asks about"
        always_ask = prepared.always_ask or why is not None
        if verdict(self.level, prepared.access, always_ask=always_ask) == "run":
            return Ruling(True, "access", self.level)
        if not always_ask and kind == "allow":
            return Ruling(True, "rule", rule)
        if not always_ask and self.grants.cover(prepared.scope):
            return Ruling(True, "grant", prepared.scope)
        return await self._asked(call.name, prepared, once_only=always_ask, why=why)

    async def _asked(self, tool: str, prepared: Prepared, *, once_only: bool, why: str | None) -> Ruling:
        """The user's word. Only the exact title of an allowing action allows."""
        asked = question.approval(self.session, tool, prepared.preview, once_only=once_only, why=why)
        title = await self.approver.ask(asked)
        approval: Approval = _ANSWERS.get(title, "reject") if title in asked.actions else "reject"
        if approval == "reject":
            reason = "Rejected: the user did not allow this call. Nothing was changed."
            return Ruling(False, "user", approval, reason, approval)
        self.grants.add(prepared.scope, approval)
        return Ruling(True, "user", approval, decision=approval)

    def _told(self, call: ToolCall, prepared: Prepared) -> HookCall:
        if prepared.arguments is not None:
            return HookCall(self.session, self.turn, call.name, prepared.arguments)
        # They have been parsed by now: what is not empty is an object.
        given: object = json.loads(call.arguments) if call.arguments.strip() else None
        arguments = cast("dict[str, Any]", given if isinstance(given, dict) else {})
        return HookCall(self.session, self.turn, call.name, arguments)


def _does(prepared: Prepared) -> str:
    match prepared.access:
        case "edit":
            return "change files"
        case "execute":
            return "run something"
        case "read":
            return "read"
