"""Random plans for hypothesis: any instruction, any constants, jumps that lead somewhere."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from nacre.nac.format.values import Constant, Plan
from nacre.nac.mep import assemble
from nacre.nac.mep.coding import Field, Step, decode_steps, encode_step
from nacre.nac.mep.program import read
from nacre.nac.mep.table import ROWS, Operand, Row
from nacre.nac.spec.constants import BOOL, FLOAT, FLOATS, INT, INTS, NULL, STRING

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8).map(lambda text: (STRING, text.encode()))
OTHERS: st.SearchStrategy[tuple[int, bytes]] = st.one_of(
    st.just((NULL, b"")),
    st.sampled_from([(BOOL, b"\0"), (BOOL, b"\1")]),
    st.integers(-(2**63), 2**63 - 1).map(lambda v: (INT, struct.pack("<q", v))),
    st.binary(min_size=8, max_size=8).map(lambda raw: (FLOAT, raw)),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3).map(
        lambda vs: (INTS, struct.pack(f"<{len(vs)}i", *vs))
    ),
    st.lists(st.binary(min_size=4, max_size=4), max_size=3).map(lambda vs: (FLOATS, b"".join(vs))),
)


@st.composite
def pools(draw: Any) -> tuple[Constant, ...]:  # noqa: ANN401 - hypothesis
    """A pool; the first is a text."""
    bodies = [draw(TEXTS), *draw(st.lists(TEXTS | OTHERS, max_size=4))]
    ids = draw(
        st.lists(st.integers(0, 65535), min_size=len(bodies), max_size=len(bodies), unique=True)
    )
    lengths = draw(st.lists(st.integers(0, 9), min_size=len(bodies), max_size=len(bodies)))
    return tuple(
        Constant(id_, tag, payload, length if tag == NULL else 0)
        for id_, (tag, payload), length in zip(ids, bodies, lengths, strict=True)
    )


def _field(
    draw: Any,  # noqa: ANN401 - hypothesis
    operand: Operand,
    pool: tuple[Constant, ...],
    slots: int,
) -> Field:
    if operand.kind == "choice":
        return int(draw(st.sampled_from(sorted(operand.words))))
    if operand.kind in ("slots", "outs"):
        return tuple(draw(st.lists(st.integers(0, slots), max_size=4)))
    if operand.kind == "text":
        return int(draw(st.sampled_from([c.id for c in pool if c.tag == STRING])))
    if operand.kind == "const":
        return int(draw(st.sampled_from([c.id for c in pool])))
    return 0 if operand.kind == "jump" else int(draw(st.integers(0, slots)))


ROWS_WITHOUT_LOOPS = [row for row in ROWS if row.mnemonic != "loop_start"]


@st.composite
def plans(
    draw: Any,  # noqa: ANN401 - hypothesis
    rows: Sequence[Row] = ROWS_WITHOUT_LOOPS,
    slots: int = 255,
) -> Plan:
    """A sound plan."""
    pool = draw(pools())
    chosen = draw(st.lists(st.sampled_from(rows), max_size=12))
    steps = [Step(r, tuple(_field(draw, o, pool, slots) for o in r.operands)) for r in chosen]
    starts = [0]
    for step in steps:
        starts.append(starts[-1] + step.size)
    made = []
    for index, step in enumerate(steps):
        target = draw(st.sampled_from(starts))
        fields = [
            target - starts[index + 1] if operand.kind == "jump" else field
            for operand, field in step.operands_with_fields()
        ]
        made.append(encode_step(Step(step.row, tuple(fields))))
    return Plan(b"".join(made), pool)


# Slots 0 to 12 with a value of every kind, so that random instructions find something to work on.
PREAMBLE = """
    res_load_model 0, "model"
    res_load_extern %0, tokenizer, 0
    src_constant %1, 3
    src_constant %2, "a text"
    src_constant %3, [1, 0, 2]
    src_constant %4, [0.5, -1.0, 2.0]
    tensor_create %5, float32, values, %4
    tensor_create %6, int64, arange, %1
    tensor_create %7, bool, zeros, %3
    src_constant %8, null
    src_constant %9, -0.5
    src_exec_mode %11
    src_constant %12, 1
    tensor_create %10, bfloat16, values, %4
"""
RUNNABLE = ROWS_WITHOUT_LOOPS


@st.composite
def runnable_plans(draw: Any) -> Plan:  # noqa: ANN401 - hypothesis
    """A sound plan whose slots are full."""
    tail = draw(plans(RUNNABLE, slots=13))
    head = read(assemble(PREAMBLE))
    # The constants of the head get ids that the tail does not use.
    used = {made.id for made in tail.constants}
    free = (number for number in range(65536) if number not in used)
    ids = {made.id: next(free) for made in head.constants}
    steps, _ = decode_steps(head.bytecode)
    renamed = [
        Step(step.row, tuple(ids[f] if o.kind in ("const", "text") else f for o, f in fields))  # type: ignore[index]
        for step, fields in ((step, step.operands_with_fields()) for step in steps)
    ]
    pool = [Constant(ids[m.id], m.tag, m.payload, m.ignored) for m in head.constants]
    return Plan(b"".join(map(encode_step, renamed)) + tail.bytecode, (*pool, *tail.constants))
