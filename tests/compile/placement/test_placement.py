"""Where things lie: whatever is needed at the same time lies apart."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.options import Options, Precision
from nacre.compile.partition.layers import Layer, TileCut
from nacre.compile.pipeline import Compiled, run_stages
from nacre.compile.placement.buffer_reuse import reuse_chains
from nacre.compile.placement.stage import L1Layout
from nacre.compile.target import target_of
from nacre.compile.tiling.occupied import OccupiedSpans, Span
from nacre.compile.tiling.residency import lifetimes
from nacre.compile.tiling.spaces import spaces_of
from nacre.compile.tiling.tiling import Tiling
from tests.compile.quantise.networks import mobile
from tests.compile.random_graphs import Case, cases, feeds_of
from tests.compile.test_random_graphs import TINY, attention_model, branches_model, examples


def compiled(case: Case, device: str) -> Compiled:
    target = target_of(device)
    try:
        return run_stages(case.module, target, Options(target.device))
    except InputError as error:
        if device != TINY or {d.code for d in error.diagnostics} != {"CMP02"}:
            raise
        reject()  # not even one row fits


_LAYERS = st.one_of(st.integers(0, 5), st.integers(0, 70))


@given(st.lists(st.tuples(st.integers(1, 9), _LAYERS, _LAYERS), max_size=14))
def test_gaps_are_apart_and_as_low_as_they_can_be(wanted: list[tuple[int, int, int]]) -> None:
    taken = OccupiedSpans()
    for size, a, b in wanted:
        first, last = min(a, b), max(a, b)
        offset = taken.lowest_gap(size, first, last)
        fits = [
            at
            for at in range(offset + 1)
            if not any(_clash(Span(at, at + size, first, last), other) for other in taken)
        ]
        assert fits == [offset]
        taken.add(offset, size, first, last)
        assert taken.end == max(span.end for span in taken)


def _clash(a: Span, b: Span) -> bool:
    return a.begin < b.end and b.begin < a.end and a.first <= b.last and b.first <= a.last


@examples(0.3)
@given(cases(most=9))
def test_tensors_that_live_at_the_same_time_lie_apart(case: Case) -> None:
    made = compiled(case, TINY)
    lives = lifetimes(made.cut)
    placed = {
        tensor: (where, made.cut.tensors[tensor].bytes)
        for tensor, where in made.placement.tensors.items()
        if tensor in lives
    }
    sizes = {buffer.name: buffer.size for buffer in made.placement.buffers}
    for where, size in placed.values():
        assert 0 <= where.offset <= sizes[where.buffer] - size
    bytes_ = {t: size for t, (where, size) in placed.items() if where.level == "L2"}
    turns = {t: chain[0] for chain in reuse_chains(made.cut, bytes_, lives) for t in chain}
    for (a, (at, size)), (b, (other, length)) in combinations(placed.items(), 2):
        if a in turns and turns[a] == turns.get(b):
            continue  # the one takes the place of the other, tile by tile
        if at.buffer == other.buffer and at.level != "DDR":
            spans = (
                Span(at.offset, at.offset + size, *lives[a]),
                Span(other.offset, other.offset + length, *lives[b]),
            )
            assert not _clash(*spans), (a, b)
        elif at.buffer == other.buffer:  # nothing is used again there
            is_apart = at.offset + size <= other.offset or other.offset + length <= at.offset
            assert is_apart, (a, b)


@examples(0.3)
@given(cases(most=9))
def test_the_parts_of_a_layer_lie_apart_in_l1(case: Case) -> None:
    made = compiled(case, TINY)
    room = target_of(TINY).device.topology
    assert room is not None
    for layer, tiling in zip(made.cut.layers, made.tilings.layers, strict=True):
        if layer.main == "copy":
            continue
        layout = made.placement.l1_layouts[layer.name]
        parts = list(_parts(layout, tiling, layer, made))
        assert all(0 <= a <= b <= (room.l1_size_bytes or 0) for a, b in parts)
        for (a, b), (c, d) in combinations(parts, 2):
            assert b <= c or d <= a or a == b or c == d


def _parts(layout: L1Layout, tiling: Tiling, layer: Layer, made: Compiled) -> list[tuple[int, int]]:
    footprint, resident = layout.footprint, made.tilings.resident
    parts = [
        (layout.shared, layout.shared + footprint.shared_bytes),
        (layout.ring, layout.ring + tiling.slots * footprint.ring),
    ]
    if layer.packed is not None and not resident.holds_weights(layer):
        parts.append((layout.weights, layout.weights + tiling.w_slots * footprint.w_bytes))
    index = made.cut.layers.index(layer)
    for tensor, (first, last) in lifetimes(made.cut).items():
        if tensor in resident and first <= index <= last:
            size = made.cut.tensors[tensor].bytes
            parts.append((resident.offsets[tensor], resident.offsets[tensor] + size))
    return parts


@examples(0.5)
@given(cases(most=9))
def test_values_of_a_tile_that_are_needed_at_the_same_time_have_their_own_spaces(
    case: Case,
) -> None:
    made = compiled(case, "npm4k")
    for layer in made.cut.layers:
        for cuts in (False, True):
            homes = spaces_of(layer, TileCut(True, cuts), frozenset()).of_local
            for a, b in combinations(range(len(homes)), 2):
                if homes[a] is not None and homes[a] == homes[b]:
                    assert _takes_over(layer, a, b) or _takes_over(layer, b, a), (layer, a, b)


def _takes_over(layer: Layer, first: int, second: int) -> bool:
    """Whether a value is done when another is made, or is only read by the step that makes it."""
    makers = [s for s in layer.steps if s.output.local == second]
    if not makers or any(result.local == first for result in layer.results):
        return False
    (maker,) = makers
    at = layer.steps.index(maker)
    last = max((n for n, s in enumerate(layer.steps)
                if first in [o.local for o in (*s.inputs, s.output)]), default=-1)  # fmt: skip
    return last < at or (last == at and maker.in_place)


def test_a_space_is_used_again() -> None:
    made = compiled(Case(attention_model(), {}), "npm4k")
    chained = [x for x in made.cut.layers if len(x.steps) > 1]
    assert chained
    for layer in chained:
        spaces = spaces_of(layer, TileCut(True, False), frozenset())
        values = [home for home in spaces.of_local if home is not None]
        assert len(set(values)) < len(values)


@pytest.mark.full
@pytest.mark.parametrize("device", ["npm4k", "npm16k", TINY], ids=["npm4k", "npm16k", "npm_tiny"])
def test_no_sequencer_runs_out_of_tokens(device: str) -> None:
    # The checker counts those that may be alive at once; its bound is sound.
    for module in (attention_model(), branches_model(), mobile(size=12, blocks=3)):
        precisions: tuple[Precision, ...] = ("f16", "i8")
        for precision in precisions:
            bundle = nacre.compile(module, device, precision, calibration=[feeds_of(module)])
            codes = {d.code for d in nacre.nem.check(bundle.program, strict=True)}
            assert "TOK07" not in codes
