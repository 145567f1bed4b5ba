"""Tokens within their number: an image never stops because those that would release one wait."""

from __future__ import annotations

from collections.abc import Mapping

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.bind.rules import BND04
from nacre.bind.tag_findings import ALLOW
from nacre.bind.tag_pressure import NO_WINDOWS
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Loop, Statement, Task
from nacre.nem.plan.live_tokens import LiveTokens, live_tokens
from nacre.nem.plan.plan import Plan
from nacre.nem.spec.limits import MAX_VERDICT_INSTANCES
from nacre.tcb.image import Image
from nacre.tcb.machine.instances import unroll
from nacre.tcb.machine.timing import time_instances


def fit_tokens(plan: Plan, device: Device, limit: int, *, may_serialise: bool) -> Mapping[int, int]:
    """Windows of loops, by position, so narrow that no schedule runs out of tokens.

    InputError where that takes more order, and none may be added. What is chained takes fewer
    tokens than the bound counts: one for all of its tasks.
    """
    windows = NO_WINDOWS
    while (over := _bound_above(plan, device, limit, windows)) is not None:
        loop = _widest_loop(plan, over.culprit, windows) if may_serialise else None
        if loop is None:
            raise InputError([_too_few(plan, over, limit)])
        windows = {
            **windows,
            loop.position: -(-windows.get(loop.position, _window(plan, loop)) // 2),
        }
    return windows


def require_end(plan: Plan, device: Device, image: Image, limit: int) -> None:
    """InputError where ideal hardware, which has one schedule, runs out of tokens."""
    over = _bound_above(plan, device, limit, NO_WINDOWS)
    if over is None:
        return
    instances = unroll(image)
    if instances.count <= MAX_VERDICT_INSTANCES and time_instances(instances).is_stuck:
        raise InputError([_too_few(plan, over, limit)])


def _bound_above(
    plan: Plan, device: Device, limit: int, windows: Mapping[int, int]
) -> LiveTokens | None:
    """The first engine on which more tokens may be alive than it keeps."""
    return next((b for b in live_tokens(plan, device, limit, windows) if b.most > limit), None)


def _window(plan: Plan, loop: Loop) -> int:
    """How many iterations can be in flight."""
    trips = max((b.grid.rows for b in plan.top.walk() if b.loop is loop), default=1)
    return min(loop.window, trips)


def _widest_loop(plan: Plan, culprit: Statement | None, windows: Mapping[int, int]) -> Loop | None:
    """The loop to be narrowed: of those around the culprit, or else of all, the widest."""
    around = list(culprit.loops) if isinstance(culprit, Task | Loop) else []
    around += [culprit] if isinstance(culprit, Loop) else []
    for loops in (around, plan.program.loops):
        width = {loop.position: windows.get(loop.position, _window(plan, loop)) for loop in loops}
        wide = [loop for loop in loops if width[loop.position] > 1]
        if wide:
            return max(wide, key=lambda loop: width[loop.position])
    return None


def _too_few(plan: Plan, over: LiveTokens, limit: int) -> Diagnostic:
    program = plan.program
    span = program.source.span(0, 0) if over.culprit is None else program.span(over.culprit.node)
    return BND04.at(
        span,
        f"{over.most} tokens may be alive at once on engine {over.engine}, which keeps {limit}: "
        "blocks in queues might wait for one for ever",
        help=f"lower `@max_in_flight`, `wait` for earlier tasks, or allow the binder to add order "
        f"with {ALLOW}",
    )
