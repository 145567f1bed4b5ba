"""Cycles with chains: by hand, and against a slow second opinion on random programs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nacre.nem.plan.fusion.chains import Chain, find_chains
from nacre.nem.run.timing.fused import FusedResult, time_chains
from nacre.nem.run.timing.fused_text import fused_json, fused_text
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.fusing_programs import GEMM, HEAD, RELU, STORE
from tests.nem.plan.fusing_sketches import Body, draw_body

# On npm_lite: tG 2 + 32 * 64 * 64 / 2048 = 66, tR 1 + 2048 / 256 = 9, tS 4 + 4096 / 32 = 132.


def fused(text: str, observed: tuple[str, ...] = ()) -> FusedResult:
    interpreter = NemInterpreter()
    return interpreter.time_fused(interpreter.load_string(text), observed=observed)


def cycles(result: FusedResult) -> tuple[int, int]:
    return result.before.cycles, result.after.cycles


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (GEMM + RELU, (75, 67)),  # 2 + 1 + max(64, 8)
        (GEMM + RELU + STORE, (207, 135)),  # 2 + 1 + 4 + max(64, 8, 128)
        (GEMM + "tS = store.async(dst=Out, src=Y, deps=[tG])\n", (198, 134)),  # 2 + 4 + 128
        ("tR = relu.async in Y out Z\n" + STORE, (141, 133)),  # 1 + 4 + 128
        (GEMM + "tR = relu.async in Y out Z @materialized deps=[tG]\n" + STORE, (207, 199)),
        ("tR = relu.async in Y out Z @materialized\n" + STORE, (141, 141)),
        # tX needs the product: it waits for the chain's end, 67, and takes 4 + 4096 / 32.
        (GEMM + RELU + "tX = transfer.async(dst=A, src=Out, deps=[tG])\n", (198, 199)),
    ],
)
def test_a_chain_takes_all_latencies_and_the_longest_work(
    body: str, expected: tuple[int, int]
) -> None:
    result = fused(HEAD + body)
    was, now = expected
    assert cycles(result) == (was, min(was, now))
    assert bool(result.chains) == (now <= was and now != 141)


# Two products, each with a slow reader: the second would wait for the store of the first.
SLOW_READERS = "".join(
    f"let Y{n} = region(Y_L1, {n} * 4096, 4096) elem=f16, shape=[32, 64], layout=MN\n"
    f"let O{n} = region(Y_L2, {n} * 4096, 4096) elem=f16, shape=[32, 64], layout=MN\n"
    f"tG{n} = gemm.async in A, B out Y{n} accum_type=f32\n"
    f"tS{n} = store.async(dst=O{n}, src=Y{n}, deps=[tG{n}])\n"
    for n in range(2)
)


def test_a_chain_that_costs_time_is_left_out() -> None:
    result = fused(HEAD + SLOW_READERS)
    # Without: 66 + 66 + 132 on two CSTLs; with: 134 twice, for there is one NMU.
    assert cycles(result) == (264, 264)
    assert not result.chains
    assert [refusal.reason for refusal in result.refusals] == ["slower", "slower"]


def test_only_what_slows_a_product_is_left_out() -> None:
    """A chain that comes later saves what it can."""
    later = "tG = gemm.async in A, B out Z deps=[tS0, tS1] accum_type=f32\n"
    result = fused(HEAD + SLOW_READERS + later + "tR = relu.async in Z out Z deps=[tG]\n")
    assert tokens(result.chains) == [["tG", "tR"]]
    assert [refusal.reason for refusal in result.refusals] == ["slower", "slower"]
    assert cycles(result) == (264 + 66 + 9, 264 + 67)  # with all chains 134 + 134 + 67


def test_a_cstl_may_be_too_busy_to_follow_products() -> None:
    """Four tiles on two CSTLs: one that follows a product is not there for other tiles."""
    tiles = [
        f"let Y{n} = region(Y_L1, {n} * 2048, 2048) elem=f16, shape=[8, 128], layout=MN\n"
        f"let Z{n} = region(Z_L1, {n} * 2048, 2048) elem=f16, shape=[8, 128], layout=MN\n"
        f"let O{n} = region(Y_L2, {n} * 2048, 2048) elem=f16, shape=[8, 128], layout=MN\n"
        f"tG{n} = gemm.async in A8, B8 out Y{n} accum_type=f32\n"
        f"tR{n} = relu.async in Y{n} out Z{n} deps=[tG{n}]\n"
        f"tS{n} = store.async(dst=O{n}, src=Z{n}, deps=[tR{n}])\n"
        for n in range(4)
    ]
    operands = (
        "let A8 = region(A_L1, 0, 512) elem=f16, shape=[8, 32], layout=MK\n"
        "let B8 = region(B_L1, 0, 8192) elem=f16, shape=[32, 128], layout=KN\n"
    )
    result = fused(HEAD + operands + "".join(tiles))
    # tG 2 + 16 = 18 on one NMU, tR 1 + 4, tS 4 + 64 = 68 on two CSTLs: the CSTLs decide. With tR
    # and tS as one of 1 + 4 + 64, they begin at 18, 36, 87 and 105.
    assert tokens(result.chains) == [[f"tR{n}", f"tS{n}"] for n in range(4)]
    assert {refusal.reason for refusal in result.refusals} == {"slower"}
    assert cycles(result)[1] == 105 + 69
    assert cycles(result)[0] > 105 + 69


def test_a_bound_cstl_stays_bound() -> None:
    on = "deps=[tG] @resource(CSTL[1])\n"
    result = fused(HEAD + GEMM + RELU.replace("deps=[tG]\n", on))
    assert result.after.units["CSTL[1]@0"] == {"busy": 67, "tasks": 1}
    assert result.after.units["NMU[0]@0"] == {"busy": 67, "tasks": 1}


def test_chains_that_would_want_a_token_for_ever_are_left_out() -> None:
    """The product alone releases two tokens; the chain waits for a transfer that lacks one."""
    device = """\
include "npm_lite.nem"
device few extends npm_lite {
unit_characteristics {
SEQ {
max_active_tokens = 2
}
}
}
"""
    text = (
        HEAD.replace('include "npm_lite.nem"\ndevice npm_lite\n', device)
        + """\
let B2 = region(Y_L1, 4096, 4096) elem=f16, shape=[32, 64], layout=MN
tA = transfer.async(dst=A, src=Out)
tB = transfer.async(dst=B, src=region(Y_L2, 0, 8192))
tG = gemm.async in A, B out Y deps=[tA, tB] accum_type=f32
tX = transfer.async(dst=B2, src=Out)
tR = add.async in Y, B2 out Z deps=[tG, tX]
"""
    )
    interpreter = NemInterpreter()
    program = interpreter.load_string(text)
    before = interpreter.time(program)
    chains = find_chains(program.plan, program.device).chains
    assert tokens(chains) == [["tG", "tR"]]
    assert (before.status, time_chains(before, chains).status) == ("completed", "deadlock")
    result = interpreter.time_fused(program)
    assert result.after.status == "completed"
    assert [refusal.reason for refusal in result.refusals] == ["slower"]


def test_the_text_has_cycles_chains_and_reasons() -> None:
    result = fused(HEAD + GEMM + RELU.replace("out Z", "out Z @materialized") + STORE)
    assert (
        fused_text(result)
        == """\
fused: 1 chain that runs 1 time; 207 cycles become 199, 1.04x as fast

            without  with  saved
cycles      207      199   8
busy: NMU   66       67
busy: CSTL  141      199

Chain     Lines  Opcodes      Times  Alone  Chained
tG -> tR  14-15  gemm + relu  1      75     67

Not fused  First pair  Line  Because
1          tR -> tS    16    `@materialized` forbids it: on `Z`"""
    )
    assert fused_json(result) == {
        "cycles": {"without": 207, "with": 199, "saved": 8},
        "chains": [
            {
                "tasks": ["tG", "tR"],
                "opcodes": ["gemm", "relu"],
                "lines": [14, 15],
                "times": 1,
                "alone": 75,
                "chained": 67,
            }
        ],
        "not_fused": [
            {
                "writer": "tR",
                "reader": "tS",
                "line": 16,
                "reason": "materialized",
                "because": "`@materialized` forbids it: on `Z`",
            }
        ],
    }


# A slow second opinion: jobs, one a chain or a task, looked at in program order at every time.

LATENCY = {"gemm": 2, "relu": 1, "add": 1, "store": 4, "transfer": 4}
WORK = {"gemm": 1, "relu": 1, "add": 1, "store": 1, "transfer": 1}  # of 4 by 4 elements
UNITS = {"gemm": "NMU", "relu": "CSTL", "add": "CSTL", "store": "CSTL", "transfer": "DMA"}
COUNTS = {"NMU": 1, "CSTL": 2, "DMA": 2}  # of npm_lite


@dataclass
class Job:
    """Tasks that run as one, and what they wait for."""

    tokens: list[str]
    units: set[str]
    cycles: int
    waits: set[str] = field(default_factory=set)
    start: int | None = None

    def is_over(self, now: int) -> bool:
        return self.start is not None and self.start + self.cycles <= now


def slow_cycles(body: Body, chains: list[list[str]]) -> int:
    """The cycles of a flat program whose chains are given by their tokens."""
    jobs: list[Job] = []
    job_of: dict[str, Job] = {}
    barred: set[str] = set()  # what waits and synchronous tasks above hold everything back for
    for task in body.tasks:
        if task.wait_before is not None:
            barred = barred | {task.wait_before}
        chain = next((tokens for tokens in chains if task.token in tokens), [task.token])
        if chain[0] == task.token:
            members = [other for other in body.tasks if other.token in chain]
            work = max(WORK[member.op] for member in members)
            time = sum(LATENCY[member.op] for member in members) + work
            jobs.append(Job(chain, {UNITS[member.op] for member in members}, time))
        job = job_of[task.token] = next(job for job in jobs if task.token in job.tokens)
        job.waits |= (set(task.deps) | barred) - set(job.tokens)
        if task.is_sync:
            barred = barred | {task.token}
    now = 0
    while not all(job.is_over(now) for job in jobs):
        for job in jobs:
            running = [
                other for other in jobs if other.start is not None and not other.is_over(now)
            ]
            has_units = all(
                sum(unit in other.units for other in running) < COUNTS[unit] for unit in job.units
            )
            is_ready = all(job_of[token].is_over(now) for token in job.waits)
            if job.start is None and has_units and is_ready:
                job.start = now
        now += 1
    return now


def tokens(chains: tuple[Chain, ...]) -> list[list[str]]:
    return [[task.name for task in chain.tasks] for chain in chains]


@settings(max_examples=scaled(60))
@given(st.integers(0, 1 << 32))
@example(61502252)  # what waits for a member is ready in the cycle in which others begin
def test_random_programs_take_the_time_of_a_slow_second_opinion(seed: int) -> None:
    body = draw_body(random.Random(seed), loops=False)
    interpreter = NemInterpreter()
    program = interpreter.load_string(body.text)
    before = interpreter.time(program)
    assert before.cycles == slow_cycles(body, []), body.text
    chains = find_chains(program.plan, program.device).chains
    after = time_chains(before, chains)
    assert after.cycles == slow_cycles(body, tokens(chains)), body.text
    result = interpreter.time_fused(program)
    assert result.after.cycles <= min(before.cycles, after.cycles)


@settings(max_examples=scaled(40))
@given(st.integers(0, 1 << 32))
def test_no_chain_waits_for_itself(seed: int) -> None:
    """Loops and flat programs run to their end with all chains that are found."""
    program = NemInterpreter().load_string(draw_body(random.Random(seed), most=14).text)
    chains = find_chains(program.plan, program.device).chains
    after = time_chains(NemInterpreter().time(program), chains)
    assert after.status == "completed"
