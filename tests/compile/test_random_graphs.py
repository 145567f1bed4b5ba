"""Random graphs of every kind: clean plans that compute what the legalised module says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import nacre
from nacre.base.diagnostics import Diagnostic, InputError
from nacre.compile.options import IoLayout, Precision
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import convolution_model, linear_model, require_any_order
from tests.compile.quantise.networks import mobile
from tests.compile.random_graphs import Case, cases, feeds_of
from tests.compile.reducing import reduced
from tests.effort import PROFILE

pytestmark = [pytest.mark.fuzz, pytest.mark.sampled(2)]  # together they take long

TINY = str(Path(__file__).with_name("npm_tiny.nem"))
DEVICES = ("npm4k", "npm16k", "npm_lite")
# Graphs are large where they are random: a failure is reduced by other means than hypothesis has.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
_EXAMPLES = {"fast": 8, "full": 400, "fuzz": 5000}


def examples(share: float) -> settings:
    """A part of the examples of the profile."""
    return settings(
        max_examples=max(2, int(_EXAMPLES.get(PROFILE, 100) * share)),
        deadline=None,
        phases=_PHASES,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def clean(program: str) -> list[Diagnostic]:
    """Errors and warnings of the strict check."""
    return [d for d in nacre.nem.check(program, strict=True) if d.severity != "info"]


def problem(
    module: Module, device: str, precision: Precision, io_layout: IoLayout = "model"
) -> str | None:
    """What is wrong with the plan of a model."""
    calibration = [feeds_of(module, seed) for seed in (3, 4)] if precision == "i8" else None
    try:
        bundle = nacre.compile(
            module, device, precision, calibration=calibration, io_layout=io_layout
        )
    except InputError as error:
        codes = {d.code for d in error.diagnostics}
        if device == TINY and codes == {"CMP02"}:
            return None  # not even one row fits
        raise
    found = clean(bundle.program)
    if found:
        return f"{device} {precision}: {found[0]}"
    validation = bundle.validate(feeds_of(module))
    if validation.first_difference is not None:
        return f"{device} {precision}: {validation.first_difference}"
    # Rounding to f16 may leave nothing of a difference of large numbers. f32 leaves enough, but a
    # norm of nearly equal numbers makes ten times of what `ok` allows.
    if precision == "f32" and not max(validation.error_by_output.values()) <= 1e-3:
        return f"{device} {precision}: {validation.error_by_output}"
    return None


def require_right(
    case: Case, device: str, precision: Precision = "f16", io_layout: IoLayout = "model"
) -> None:
    """A clean plan with the values of the legalised module; else a small model without one."""

    def is_wrong(module: Module) -> bool:
        try:
            return problem(module, device, precision, io_layout) is not None
        except Exception:  # a crash is as wrong as a difference
            return True

    if is_wrong(case.module):
        small = reduced(case.module, is_wrong)
        raise AssertionError(f"{problem(small, device, precision, io_layout)}\n{small}")


@pytest.mark.heavy("whole networks, compiled and run on three devices")
@examples(1)
@given(cases())
def test_any_graph_on_three_devices(case: Case) -> None:
    for device in DEVICES:
        require_right(case, device)


@examples(0.5)
@given(cases())
def test_any_graph_where_hardly_anything_fits(case: Case) -> None:
    require_right(case, TINY)


@examples(0.5)
@given(cases())
def test_any_graph_in_single_precision(case: Case) -> None:
    require_right(case, "nem_reference", "f32")


@examples(0.5)
@given(cases())
def test_any_graph_on_integers(case: Case) -> None:
    for device in ("npm4k", TINY):
        require_right(case, device, "i8")


@examples(0.5)
@given(cases())
def test_any_graph_with_borders_as_the_device_has_them(case: Case) -> None:
    for precision in ("f16", "i8"):
        require_right(case, "npm4k", precision, "native")


# Any order of tasks gives the same bytes


def attention_model() -> Module:
    """Scores, softmax, a weighted sum, and what was there before added."""
    random = np.random.default_rng(5)
    builder = Builder()
    x = builder.input("x", "f32", (2, 12, 16))
    weights = [random.standard_normal((16, 16)).astype(np.float32) / 4 for _ in range(3)]
    q, k, v = (builder.add("MatMul", x, builder.constant(w)) for w in weights)
    turned = builder.add("Transpose", k, permutation=(0, 2, 1))
    scores = builder.add("Softmax", builder.add("MatMul", q, turned), axis=2)
    return builder.module(builder.add("BinOp", x, builder.add("MatMul", scores, v), op="Add"))


def branches_model() -> Module:
    """Convolutions side by side, their results in one tensor, of which parts are read."""
    random = np.random.default_rng(6)
    builder = Builder()
    x = builder.input("x", "f32", (2, 9, 9, 8))
    parts = []
    for k in (1, 3, 5):
        weights = builder.constant(random.standard_normal((k, k, 8, 6)).astype(np.float32) / 8)
        parts.append(builder.add("Conv", x, weights, layout="NHWC", pads=(k // 2,) * 4))
    joined = builder.add("Concat", *parts, axis=3)
    pooled = builder.add("MaxPool", joined, layout="NHWC", kernel=(2, 2), strides=(2, 2))
    part = builder.add("Slice", joined, starts=(0, 0, 0, 2), ends=(2, 9, 9, 14), steps=(1, 2, 1, 1))
    return builder.module(pooled, builder.add("ReluNan", part))


SMALL: dict[str, tuple[Module, Precision]] = {
    "linear": (linear_model(40, 32, 24), "f16"),
    "convolution": (convolution_model((2, 13, 13, 8), (3, 3, 8, 16)), "f16"),
    "attention": (attention_model(), "f16"),
    "branches": (branches_model(), "f16"),
    "mobile": (mobile(size=8, blocks=2), "i8"),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("device", ["npm4k", TINY], ids=["npm4k", "npm_tiny"])
@pytest.mark.parametrize("name", SMALL)
def test_fifty_schedules_give_the_same_bytes(name: str, device: str) -> None:
    module, precision = SMALL[name]
    feeds = feeds_of(module)
    bundle = nacre.compile(module, device, precision, calibration=[feeds])
    require_any_order(bundle, feeds, 50)
