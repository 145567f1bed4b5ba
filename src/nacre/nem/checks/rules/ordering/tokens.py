"""TOK: how many tokens a sequencer keeps; what copies need stands in copies.py."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import declare, rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import device_text
from nacre.nem.model.program import Loop, Statement, Task
from nacre.nem.plan.live_tokens import live_tokens
from nacre.nem.syntax import ast

_TOKENS = "Core Program Objects / Tasks and Tokens"


@rule(
    "TOK07",
    "too-many-live-tokens",
    "Device Configuration / SEQ.max_active_tokens",
    severity="warning",
)
def too_many_live_tokens(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """More tokens may be alive at once than an engine's sequencer keeps; tasks then wait for one.

    A token lives from the start of its task until the task is complete and every task and `wait`
    that names it has started. The number is an upper bound: tokens are put into chains in which
    each is dead before the next begins, and the chains are counted. A loop whose body makes K
    chains makes K times as many as its window lets iterations overlap. So the warning may be
    wrong, but a program without it never runs out of tokens. `nacre check` says which it is: safe,
    a deadlock that the timed machine meets, or unknown.

    Bad (-) and good (+):

          include "nem_baseline_1.0.nem"
          device small extends nem_baseline_1_0 {
              topology {
                  num_engines = 1
                  l2_size_bytes = 1024
                  device_units { sDMA = 1 WDM = 0 }
                  per_engine { NMU = 1 CSTL = 1 DMA = 1 VPU = 1 SEQ = 1 l1_size_bytes = 1024 }
              }
              unit_characteristics { SEQ { max_active_tokens = 2 } }
          }
          program p:
          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - loop i in [0..3] @max_in_flight(3):
        + loop i in [0..3] @max_in_flight(2):
              t = transfer.async(dst=region(B, i * 16, 16), src=region(A, i * 16, 16))
          endloop
    """
    limit = facts.device.characteristics.get("SEQ", {}).get("max_active_tokens")
    if limit is None or facts.device.is_abstract or facts.plan.problems:
        return
    for bound in live_tokens(facts.plan, facts.device, limit):
        if bound.most > limit and bound.culprit is not None:
            yield too_many_live_tokens.at(
                facts.span(_culprit(bound.culprit)),
                f"{bound.most} tokens may be alive at once on engine {bound.engine}, but "
                f"{device_text(facts)} keeps {limit}",
                help=_mend(bound.culprit),
            )


def _culprit(statement: Statement) -> ast.Node:
    if isinstance(statement, Task):
        return statement.node.token or statement.node.op
    if isinstance(statement, Loop):
        windows = [d.node for d in statement.decorators if d.name == "max_in_flight"]
        return windows[0] if windows else ast.Node(statement.node.start, statement.node.header_end)
    return statement.node


def _mend(statement: Statement) -> str:
    if isinstance(statement, Loop) and statement.window > 1:
        return "lower `@max_in_flight`, or `wait` for tasks before the loop that it does not need"
    return "`wait` for earlier tasks before starting more"


declare(
    "TOK03",
    "wait-yields-no-token",
    _TOKENS,
    """
    A `wait` produces no token: `t = wait(u)` gets SIG20. No diagnostic carries this code.
    """,
    behaviour=True,
)
declare(
    "TOK04",
    "sync-waits-at-once",
    "Task Taxonomy / Transfer Tasks",
    """
    A `.sync` form is the `.async` form followed at once by a `wait` for it.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
