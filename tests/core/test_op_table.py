"""Every row of the operation table is whole: kernel, shape, work, text, verifier, ATen."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.core.canonical import canonicalise
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.ops import OPS, OpSpec
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.verify import verify
from nacre.kernels.interface.call import Call, TensorType
from nacre.kernels.interface.fitting import Fitting
from nacre.kernels.registry import PRIMITIVES
from tests.core.uses import USES, UseOf, inputs_of, module_of, type_of

_COMPUTED = [
    spec
    for spec in OPS.values()
    if spec.name != "Input" and not spec.traits & {"constant", "opaque"}
]
_FURTHER = [spec.name for spec in _COMPUTED if spec.profile == "nacre-1"]
EVERY_USE = pytest.mark.parametrize("use", USES, ids=lambda use: use.opcode)


def words(spec: OpSpec) -> tuple[str, ...]:
    """The values of `op`, or one empty word."""
    attribute = spec.attribute("op")
    return attribute.choices if attribute is not None else ("",)


@pytest.mark.parametrize("spec", _COMPUTED, ids=lambda spec: spec.name)
def test_a_row_names_a_primitive_and_its_calls_in_aten(spec: OpSpec) -> None:
    assert spec.primitive in PRIMITIVES
    assert spec.summary
    missing = [word for word in words(spec) if not (spec.aten.get(word) or spec.aten.get(""))]
    assert missing == []
    if spec.profile == "nacre-1":
        assert isinstance(PRIMITIVES[str(spec.primitive)].shape, Fitting)


@pytest.mark.parametrize("spec", _COMPUTED, ids=lambda spec: spec.name)
def test_the_calls_exist_in_torch(spec: OpSpec) -> None:
    torch = pytest.importorskip("torch")
    for name in {call for calls in spec.aten.values() for call in calls}:
        if name.startswith("quantized_decomposed."):
            pytest.importorskip("torch.ao.quantization.fx._decomposed")
            space, call, overload = name.split(".")
        else:
            space, (call, overload) = "aten", name.split(".")
        packet = getattr(getattr(torch.ops, space), call)
        assert overload in packet.overloads(), name


def test_every_operation_of_the_profile_has_a_use() -> None:
    assert [use.opcode for use in USES] == _FURTHER


@EVERY_USE
def test_a_use_verifies_and_is_not_of_core_v1(use: UseOf) -> None:
    module = module_of(use)
    assert verify(module, "nacre-1") == []
    found = [d.message for d in verify(module, "core-v1")]
    assert f"`{use.opcode}` is an operation of `nacre-1`, not of `core-v1`" in found


@EVERY_USE
def test_a_use_has_the_type_that_is_written_and_prints(use: UseOf) -> None:
    module = module_of(use)
    assert module.operations[-1].type == type_of(use.gives)
    text = print_module(module)
    again = parse(text)
    assert again == module
    assert print_module(again) == text


@EVERY_USE
def test_a_use_computes(use: UseOf) -> None:
    module = module_of(use)
    inputs = inputs_of(module)
    (result,) = evaluate(module, inputs)
    wanted = type_of(use.gives)
    assert (result.dtype, result.shape) == (wanted.element.dtype, wanted.shape)
    (ordered,) = evaluate(module, inputs, ordered=True)
    (canonical,) = evaluate(canonicalise(module), inputs)
    assert np.array_equal(canonical, result)
    near = np.allclose(ordered.astype(np.float64), result.astype(np.float64), rtol=1e-2)
    assert near


@EVERY_USE
def test_a_use_costs_something(use: UseOf) -> None:
    spec = OPS[use.opcode]
    types = [type_of(text) for text in use.types.split()]
    result = type_of(use.gives)
    call = Call(
        tuple(TensorType(t.element, t.shape) for t in types),
        (TensorType(result.element, result.shape),),
        spec.with_defaults(module_of(use).operations[-1].attributes),
    )
    assert PRIMITIVES[str(spec.primitive)].work(call).scalar_operations > 0


@EVERY_USE
def test_a_declared_type_that_does_not_follow_is_refused(use: UseOf) -> None:
    text = print_module(module_of(use))
    lines = text.splitlines()
    lines[-2] = lines[-2].rpartition(" : ")[0] + " : tensor<f64[7]>"
    found = verify(parse("\n".join(lines)), "nacre-1")
    assert [d.code for d in found] == ["MOD11"]
