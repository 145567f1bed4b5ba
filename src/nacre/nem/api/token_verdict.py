"""Whether a program can run out of tokens: safe, deadlock or unknown."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from nacre.base.diagnostics import InputError
from nacre.nem.api.timing import time_plan
from nacre.nem.checks.engine import CheckResult
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.plan.live_tokens import live_tokens
from nacre.nem.run.timing.status import deadlock_findings
from nacre.nem.spec.limits import MAX_VERDICT_INSTANCES

_TOO_MANY = "TOK07"  # in strict mode an error, and the very thing that is asked about


class TokenVerdict(Struct, frozen=True):
    """What is known about a program's tokens.

    `safe`: on no schedule can more be alive than an engine keeps. `deadlock`: the timed machine
    comes to a point where nothing can start. `unknown`: neither was found.
    """

    verdict: Literal["safe", "deadlock", "unknown"]
    reason: str
    limit: int | None = None  # tokens that an engine keeps; None: as many as there are
    most: int | None = None  # that may be alive on one engine at most; None: not known
    waiting: tuple[str, ...] = ()  # the tasks that never start

    def __str__(self) -> str:
        return f"tokens: {self.verdict}, {self.reason}"

    def as_json(self) -> dict[str, Any]:
        """The verdict as JSON values."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "limit": self.limit,
            "most": self.most,
            "waiting": list(self.waiting),
        }


def token_verdict(checked: CheckResult) -> TokenVerdict | None:
    """The verdict about a program that has been checked; None where no task takes a token."""
    facts = checked.facts
    if facts is None or not facts.program.tasks:
        return None
    if any(d.severity == "error" and d.code != _TOO_MANY for d in checked.diagnostics):
        return TokenVerdict("unknown", "the program has errors")
    limit = facts.device.characteristics.get("SEQ", {}).get("max_active_tokens")
    if limit is None:
        return TokenVerdict("safe", "nothing limits them")
    most = max((b.most for b in live_tokens(facts.plan, facts.device, limit)), default=0)
    if most <= limit:
        reason = f"at most {most} of the {limit} that an engine keeps are alive at once"
        return TokenVerdict("safe", reason, limit, most)
    return _verdict_by_timing(facts, limit, most)


def _verdict_by_timing(facts: ProgramFacts, limit: int, most: int) -> TokenVerdict:
    """What the timed machine meets: a deadlock is one, a run that ends proves nothing."""
    many = f"{most} may be alive at once and an engine keeps {limit}"
    if facts.plan.instances > MAX_VERDICT_INSTANCES:
        reason = f"{many}; {facts.plan.instances} task instances are too many to time"
        return TokenVerdict("unknown", reason, limit, most)
    try:
        result = time_plan(facts.plan, facts.device)
    except InputError as error:
        return TokenVerdict("unknown", f"{many}; {error.diagnostics[0].message}", limit, most)
    for finding in deadlock_findings(result):
        return TokenVerdict("deadlock", finding.message, limit, most, tuple(result.waiting))
    reason = f"{many}; the timed machine meets no deadlock"
    return TokenVerdict("unknown", reason, limit, most)
