"""Names in plans: one text for what several regions share, as short as f32 allows."""

from __future__ import annotations

import importlib
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.emission.names import SharedNames, quant_text, shared_names
from nacre.compile.emission.regions import regions_declared_once, regions_in_copies
from nacre.compile.options import Options
from nacre.compile.partition.items import Quant
from nacre.compile.pipeline import compile_module
from nacre.compile.program import Affine, Compute, Copy, Let, Loop, Region, Statement
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module

CHANNELS, SINGLE = Quant((0.5, 0.25), (0, 0)), Quant((0.5,), (3,))


def region(quant: Quant | None = None, shape: tuple[int, ...] = (4, 2), offset: int = 0) -> Region:
    return Region("M", Affine(offset), 8, "i8", shape, "MN", quant=quant)


def lets(*regions: Region) -> list[Statement]:
    return [Let(name, region) for name, region in zip("abcdefgh", regions, strict=False)]


def task(token: str, operand: str, layer: str) -> Compute:
    return Compute(token, "relu", (operand,), operand, debug=layer)


def loop_of(*body: Statement) -> Loop:
    return Loop("i", 0, 3, 1, body)


def test_a_quantisation_of_two_types_is_named_after_the_first_layer_that_uses_it() -> None:
    first = Let("a", region(SINGLE))
    second = loop_of(Let("b", region(SINGLE, (2, 4))), task("u", "b", "next"))
    names = shared_names([first, task("t", "a", "stem"), second])
    assert names.type_text(region(SINGLE)).endswith(", quant=stem_q0")
    assert list(names.declarations(first)) == ["let stem_q0 = per_tensor(scale=0.5, zero_point=3)"]
    assert not list(names.declarations(second))


def test_four_regions_of_a_type_name_it_and_three_do_not() -> None:
    regions = [region(SINGLE, offset=8 * number) for number in range(4)]
    statements = [*lets(*regions), task("t", "a", "stem")]
    names = shared_names(statements)
    assert names.type_text(regions[3]) == "type=stem_t0"
    assert list(names.declarations(statements[0])) == [
        "let stem_t0 = elem=i8, shape=[4, 2], layout=MN, quant=per_tensor(scale=0.5, zero_point=3)"
    ]
    assert not shared_names(lets(*regions[:3])).type_text(regions[0]).startswith("type=")


def test_a_type_that_has_a_name_writes_its_quantisation_once() -> None:
    names = shared_names(lets(*[region(CHANNELS, offset=8 * number) for number in range(5)]))
    assert not names.quants
    assert len(names.types) == 1


def test_what_a_loop_uses_first_is_declared_before_the_loop() -> None:
    both = loop_of(*lets(region(SINGLE), region(SINGLE)), task("t", "b", "stem"))
    declared = "let q0 = per_tensor(scale=0.5, zero_point=3)"
    assert list(shared_names([both]).declarations(both)) == [declared]


def test_the_axis_of_channels_is_part_of_what_is_shared_and_that_of_a_single_scale_is_not() -> None:
    flat, cube = (4, 2), (2, 2, 2)
    assert not shared_names(lets(region(CHANNELS, flat), region(CHANNELS, cube))).quants
    assert shared_names(lets(region(SINGLE, flat), region(SINGLE, cube))).quants


def test_a_name_that_something_else_has_is_not_taken() -> None:
    copies = [Copy(token, "store", region(SINGLE), "x", debug="stem") for token in "tu"]
    names = shared_names([Let("stem_q0", Region("M", Affine(), 8)), *copies])
    assert names.type_text(region(SINGLE)).endswith(", quant=stem_q1")


def test_nothing_is_named_where_nobody_gathered_names() -> None:
    assert "per_tensor(" in SharedNames().type_text(region(SINGLE))


@pytest.mark.parametrize("seed", range(4))
def test_scales_have_few_digits_and_are_the_same_numbers_in_f32(seed: int) -> None:
    bits = np.random.default_rng(seed).integers(1, 0x7F800000, 2000, np.uint32)
    for scale in bits.view(np.float32):
        text = quant_text(region(Quant((float(scale),), (0,))))
        written = text.removeprefix("per_tensor(scale=").removesuffix(", zero_point=0)")
        assert np.float32(float(written)) == scale
        assert len(Decimal(written).normalize().as_tuple().digits) <= 9


def test_a_scale_that_is_no_f32_means_the_same_f32() -> None:
    assert quant_text(region(Quant((0.1,), (0,)))) == "per_tensor(scale=0.1, zero_point=0)"


BYTES = Region("L2", Affine(), 8)


def test_a_region_that_one_copy_uses_stands_in_it_without_the_type_that_bytes_do_not_need() -> None:
    copy = Copy("t", "transfer", "a", BYTES)
    assert regions_in_copies([*lets(region()), copy]) == (
        Copy("t", "transfer", Region("M", Affine(), 8), BYTES),
    )


def test_a_type_stays_where_the_other_side_has_one() -> None:
    strided = Region("L2", Affine(), 14, "i8", (4, 2), strides=(4, 1))
    (copy,) = regions_in_copies([*lets(region()), Copy("t", "transfer", "a", strided)])
    assert isinstance(copy, Copy)
    assert copy.dst == region()
    assert copy.src == strided


@pytest.mark.parametrize(
    "rest",
    [
        [task("u", "a", "stem")],
        [Copy("u", "store", BYTES, "a")],
        [loop_of(task("u", "a", "stem"))],
    ],
    ids=["a task", "another copy", "a loop"],
)
def test_a_region_that_something_else_uses_keeps_its_name(rest: list[Statement]) -> None:
    statements = (*lets(region()), Copy("t", "transfer", "a", BYTES), *rest)
    assert regions_in_copies(statements) == statements


def test_a_region_that_only_a_copy_in_a_loop_below_uses_keeps_its_name() -> None:
    statements = (*lets(region()), loop_of(Copy("t", "transfer", "a", BYTES)))
    assert regions_in_copies(statements) == statements


def test_loops_are_looked_through() -> None:
    (loop,) = regions_in_copies([loop_of(*lets(region()), Copy("t", "transfer", "a", BYTES))])
    assert isinstance(loop, Loop)
    assert len(loop.body) == 1


def test_tiles_that_use_a_region_again_use_its_first_name() -> None:
    first, again = task("t", "a", "stem"), Compute("u", "add", ("a", "b"), "b", debug="stem")
    statements = [*lets(region(), region()), first, again]
    assert regions_declared_once(statements) == (
        Let("a", region()),
        first,
        Compute("u", "add", ("a", "a"), "a", debug="stem"),
    )


def test_layers_have_names_of_their_own_for_a_region() -> None:
    statements = (*lets(region(), region()), task("t", "a", "stem"), task("u", "b", "next"))
    assert regions_declared_once(statements) == statements


def test_what_a_loop_declares_is_declared_again_behind_it() -> None:
    body = loop_of(Let("a", region()), task("t", "a", "stem"))
    after = (Let("a", region()), task("u", "a", "stem"))
    assert regions_declared_once([body, *after]) == (body, *after)


def test_a_loop_uses_what_is_declared_before_it() -> None:
    outside = (Let("a", region()), task("t", "a", "stem"))
    body = loop_of(Let("b", region()), task("u", "b", "stem"))
    assert regions_declared_once([*outside, body]) == (*outside, loop_of(task("u", "a", "stem")))


def test_a_plan_with_names_has_the_tasks_the_cycles_and_the_bits_of_one_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, feeds = network()
    named = compiled(module, feeds)
    emitter = importlib.import_module("nacre.compile.emission.stage")
    monkeypatch.setattr(emitter, "shared_names", lambda _: SharedNames())
    monkeypatch.setattr(emitter, "regions_in_copies", tuple)
    monkeypatch.setattr(emitter, "regions_declared_once", tuple)
    plain = compiled(module, feeds)
    assert len(named.program) < len(plain.program)
    assert not named.problems
    assert named.manifest.layers == plain.manifest.layers
    found, expected = named.time(), plain.time()
    assert (found.cycles, found.units) == (expected.cycles, expected.units)
    first, second = (bundle.runnable_program.plan for bundle in (named, plain))
    assert [(t.token, t.op, t.deps) for t in first.program.tasks] == [
        (t.token, t.op, t.deps) for t in second.program.tasks
    ]
    assert first.instances == second.instances
    for ours, theirs in zip(named.run(feeds).values(), plain.run(feeds).values(), strict=True):
        assert np.array_equal(ours, theirs)


def network() -> tuple[Module, dict[str, Any]]:
    """Convolutions on integers, in tiles."""
    random, builder = np.random.default_rng(0), Builder()
    value = builder.input("x", "f32", (1, 16, 40, 40))
    for _ in range(2):
        weights = random.standard_normal((16, 16, 3, 3), np.float32) / 12
        value = builder.add("Conv", value, builder.constant(weights), pads=(1, 1, 1, 1))
        value = builder.add("Silu", value)
    return builder.module(value), {"x": random.standard_normal((1, 16, 40, 40), np.float32)}


def compiled(module: Module, feeds: dict[str, Any]) -> CompiledModel:
    target = target_of("npm4k")
    return compile_module(module, target, Options(target.device, "i8", calibration=[feeds]))
