"""Instances are numbered in the order of the program, over all streams."""

from __future__ import annotations

import time

import pytest

from nacre.base.diagnostics import InputError
from nacre.base.terms import operation
from nacre.tcb.image import DEVICE, Block, Repeat, counter
from nacre.tcb.machine.instances import unroll
from tests.tcb.machine.images import after, at, copy, image, stream, tag

A, B = at("DDR", 0, 4), at("L2", 0, 4)


def names(*streams: object) -> list[tuple[int, tuple[int, ...]]]:
    found = unroll(image(*streams))  # type: ignore[arg-type]
    return [(found.block_of(n).block.position, found.counters(n)) for n in range(found.count)]


def test_streams_are_projections_of_one_program() -> None:
    one = stream(copy(0, A, B), Repeat(2, 2, (copy(3, A, B), copy(5, A, B))), engine=0)
    join = Block("join", 2)
    end = Block("join", 6)
    other = stream(join, Repeat(2, 2, (copy(4, A, B), Block("join", 6))), end, engine=DEVICE)
    inside = [(p, (c,)) for c in (0, 1) for p in (3, 4, 5, 6)]
    assert names(other, one) == [(0, ()), (2, ()), *inside, (6, ())]


def test_counts_may_depend_on_counters_around_them() -> None:
    inner = Repeat(1, operation("+", counter(0), 1), (copy(2, A, B),))
    found = names(stream(Repeat(0, 3, (inner, copy(4, A, B)))))
    expected = [(0, 0), (0,), (1, 0), (1, 1), (1,), (2, 0), (2, 1), (2, 2), (2,)]
    assert [counters for _, counters in found] == expected


def test_a_repeat_that_never_happens_has_no_instances() -> None:
    inner = Repeat(1, operation("-", counter(0), 1), (copy(2, A, B, after(0), signal=tag(1)),))
    assert names(stream(Repeat(0, 3, (inner,)))) == [(2, (2, 0))]


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ((Repeat(0, 10**9, (copy(1, A, B),)),), "more instances than a machine takes"),
        ((copy(1, A, B, after(-3)),), "there is no tag -3"),
        ((copy(1, A, B, after(1 << 40)),), "there is no tag"),
        ((Repeat(0, operation("/", 1, 0), (copy(1, A, B),)),), "has no value: division"),
        (
            (Repeat(0, 2, (copy(1, A, B, after(operation("mod", 1, counter(0)))),)),),
            "a term of a block has no value: remainder",
        ),
    ],
)
def test_what_cannot_be_unrolled_is_refused(items: tuple[Block | Repeat, ...], why: str) -> None:
    with pytest.raises(InputError) as caught:
        unroll(image(stream(*items)))
    (finding,) = caught.value.diagnostics
    assert finding.code == "TCB50"
    assert why in finding.message


def test_repeats_that_differ_between_streams_are_refused() -> None:
    streams = [stream(Repeat(0, 2 + k, (copy(1 + k, A, B),)), engine=k) for k in (0, 1)]
    with pytest.raises(InputError, match="differ"):
        unroll(image(*streams))


def test_a_million_instances_are_columns() -> None:
    c = counter(0)
    body = tuple(copy(n, A, B, after(n, operation("+", c, 1)), signal=tag(n + 1)) for n in range(5))
    began = time.process_time()
    found = unroll(image(stream(Repeat(0, 200_000, body))))
    assert found.count == 1_000_000
    assert time.process_time() - began < 10
