"""Every call gives what PyTorch gives: elements, element types, shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from nacre.nac.format.file import to_bytes
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.binding import Ref
from nacre.nac.program.calls import handlers
from nacre.nac.run.model import load
from nacre.nac.spec.calls import schemas
from tests.core.aten.cases import CASES, KEYWORD_CASES, WITHOUT_ORACLE

OURS = {"nac.pass", "nac.arange", "nac.transpose", "getitem", "mul", "floordiv"}


def ran(call: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int) -> list[Any]:
    """What the runtime gives for a call, its arguments in order and keywords behind."""
    made = Assembler()
    arrays: dict[str, Any] = {}

    def flat(value: Any) -> list[Any]:  # noqa: ANN401 - an argument
        if isinstance(value, np.ndarray):
            name = f"x{len(arrays)}"
            arrays[name] = value
            return [made.input(name)]
        if isinstance(value, list) and any(isinstance(v, np.ndarray) for v in value):
            return [part for item in value for part in flat(item)]
        return [tuple(value) if isinstance(value, list) else value]

    given = [part for value in (*args, *kwargs.values()) for part in flat(value)]
    name = call if call in OURS else f"aten.{call}"
    result = made.call(name, *given)
    if count == 1:
        made.output(result)
    else:
        made.output(*[made.call("getitem", result, place) for place in range(count)])
    return load(to_bytes(made.file())).run(arrays)


def test_every_schema_has_a_handler_and_a_case() -> None:
    assert set(handlers()) == set(schemas())
    shown = {call for call, *_ in (*CASES, *KEYWORD_CASES)}
    assert set(schemas()) - shown == OURS | WITHOUT_ORACLE


def _expected(call: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    torch = pytest.importorskip("torch")

    def tensor(value: Any) -> Any:  # noqa: ANN401 - an argument
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value.copy())
        return [tensor(part) for part in value] if isinstance(value, list) else value

    words = {"dtype": lambda w: getattr(torch, w)}
    target = getattr(getattr(torch.ops.aten, call.split(".")[0]), call.split(".")[1])
    named = {k: words.get(k, tensor)(v) for k, v in kwargs.items()}
    only = [argument.name for argument in target._schema.arguments if argument.kwarg_only]
    first = len(target._schema.arguments) - len(only)
    named.update(zip(only, args[first:], strict=False))
    args = args[:first]
    if call == "to.dtype":
        args = (args[0], getattr(torch, args[1]))
    found = target(*[tensor(a) for a in args], **named)
    parts = found if isinstance(found, list | tuple) else [found]
    return [part.numpy() if hasattr(part, "numpy") else np.asarray(part) for part in parts]


# Results that only serve a gradient have no form.
FIRST_ONLY = ("native", "_native", "_batch_norm", "_fused", "_scaled", "max_pool2d_with",
              "max_pool3d_with", "adaptive_max")  # fmt: skip


def _compared(call: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    wanted = _expected(call, args, kwargs)
    if call.startswith(FIRST_ONLY):
        wanted = wanted[:1]
    found = ran(call, args, kwargs, len(wanted))
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6, equal_nan=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("call", "args"), CASES, ids=[f"{at}-{call}" for at, (call, _) in enumerate(CASES)]
)
def test_a_call_is_what_pytorch_computes(call: str, args: tuple[Any, ...]) -> None:
    _compared(call, args, {})


@pytest.mark.parametrize(
    ("call", "args", "kwargs"), KEYWORD_CASES, ids=[c[0] for c in KEYWORD_CASES]
)
def test_a_call_with_keywords(call: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _compared(call, args, kwargs)


def test_what_a_file_writes_of_a_schema_is_its_beginning() -> None:
    for schema in schemas().values():
        written = schema.written
        assert schema.parameters[: len(written)] == written


def test_a_list_of_computed_sizes_is_spread() -> None:
    made = Assembler()
    x = made.input("x")
    rows = made.call("aten.sym_size.int", x, 0)
    both = made.call("mul", rows, 2)
    third = made.call("floordiv", both, 4)
    made.output(made.call("nac.view", x, third, -1, codes="Tii"), made.call("nac.add", both, 1))
    found = load(to_bytes(made.file())).run({"x": np.zeros((6, 4), np.float32)})
    assert found[0].shape == (3, 8)
    assert found[1] == 13


def test_the_conventions_of_standard_operations() -> None:
    made = Assembler()
    x = made.input("x")
    outputs = [
        made.call("nac.pass", x, 0.5, False),
        made.call("nac.arange", 4, "float32", "strided", "cpu", False, codes="iccbb"[:3] + "cb"),
        made.call("nac.arange", 1, 7, 2),
        made.call("nac.where", made.call("nac.gt", x, 0.0), x, -1.0),
        made.call("nac.clone", x, "contiguous_format", codes="Tc"),
        made.call("nac.neg", x),
        made.call("nac.le", x, x),
    ]
    made.output(*outputs)
    x_value = np.array([[1.0, -2.0]], np.float32)
    found = load(to_bytes(made.file())).run({"x": x_value})
    expected = [x_value, np.arange(4, dtype=np.float32), np.array([1, 3, 5]),
                np.array([[1.0, -1.0]], np.float32), x_value, -x_value,
                np.array([[True, True]])]  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_signature_refers_to_its_arguments_by_name() -> None:
    from nacre.nac.spec.calls import constant_code, tensor_code

    schema = schemas()["scaled_dot_product_attention.default"]
    codes = [tensor_code(schema, p) for p in schema.parameters if p.kind == "T"]
    assert "".join(codes) == "QKVM"
    linear = schemas()["linear.default"]
    assert "".join(tensor_code(linear, p) for p in linear.parameters) == "TWB"
    softmax = schemas()["softmax.int"].parameters
    assert [constant_code(softmax[1], -1), constant_code(softmax[2], None)] == ["A", "c"]
    assert Ref(3).index == 3
