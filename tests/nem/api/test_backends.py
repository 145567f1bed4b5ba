"""What carries out opcodes: the choice of a backend, and backends of users' own."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nacre.nem.run.machine import backends
from neminterp import ComputeBackend, NemInterpreter, register_backend
from tests.nem.api.own_backends import DATA, RELU, Listed, Printed, refusal, run

# 8.4 Backend Selection


def test_backends_are_chosen_as_printed() -> None:
    interp = NemInterpreter()
    program = interp.load_string(RELU)
    for backend in ("auto", "numpy"):
        interp.set_compute_backend(backend)
        result = interp.run(program, inputs={"A": DATA})
        np.testing.assert_array_equal(result.read_region("Y"), np.maximum(DATA, 0))


def test_the_vendors_backend_is_missed_clearly() -> None:
    interp = NemInterpreter()
    for call in (
        lambda: interp.set_compute_backend("npm"),
        lambda: interp.set_opcode_backend("gemm", "npm"),
        lambda: interp.set_opcode_backend("conv2d", "npm"),
    ):
        code, message = refusal(call)
        assert code == "RUN09"
        assert "`NpmPyTorchApi`, which is not installed" in message
    result = interp.run(interp.load_string(RELU), inputs={"A": DATA})  # the choice stays as it was
    assert result.status == "completed"


def vendor() -> Any:  # noqa: ANN401 - a module made up
    """A library as the specification sketches it."""
    api: Any = ModuleType("NpmPyTorchApi")
    api.cstl_relu = lambda x: np.maximum(x, 2)
    api.cstl_clamp = lambda x, min_val, max_val: np.clip(x, int(min_val), int(max_val))
    return api


def test_the_vendors_library_is_used_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "NpmPyTorchApi", vendor())
    for name in ("npm", "auto"):
        np.testing.assert_array_equal(run(name).read_region("Y"), np.maximum(DATA, 2))
    clamp = RELU.replace("relu.sync in X out Y", "clamp.sync in X out Y min_val=-3.0 max_val=5.0")
    np.testing.assert_array_equal(run("npm", clamp).read_region("Y"), np.clip(DATA, -3, 5))
    saturated = run("npm", RELU.replace("out Y", "out Y saturate=true"))
    assert [d.code for d in saturated.diagnostics] == ["RUN04"]  # an attribute it does not know
    # `auto` takes the kernels for what the library lacks; `npm` never pretends.
    negated = RELU.replace("relu", "neg")
    np.testing.assert_array_equal(run("auto", negated).read_region("Y"), -DATA)
    assert refusal(lambda: run("npm", negated)) == (
        "RUN09",
        "backend `npm` does not support `neg`",
    )


GEMM = """
buffer S : L2 (size=32)
buffer M : L1 (size=64)
t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
let A = region(M, 0, 16) elem={0}, shape=[2, 2], layout=MK{1}
let B = region(M, 16, 16) elem={0}, shape=[2, 2], layout=KN{1}
let Y = region(M, 32, 16) elem={0}, shape=[2, 2], layout=MN{1}
g = gemm.sync in A, B out Y accum_type={2}
"""


@pytest.mark.parametrize(
    ("elem", "precision"), [("f16", "fp16"), ("bf16", "bf16"), ("f32", "fp32"), ("i8", "int8")]
)
def test_the_vendors_products_are_told_their_precision(
    monkeypatch: pytest.MonkeyPatch, elem: str, precision: str
) -> None:
    seen: list[Any] = []

    def nmu_gemm(data: Any, weights: Any, bias: Any, accum_type: Any, precision: Any) -> Any:  # noqa: ANN401 - as printed
        seen.append((bias, accum_type, precision))
        return np.zeros((2, 2), data.dtype)

    api = vendor()
    api.nmu_gemm = nmu_gemm
    monkeypatch.setitem(sys.modules, "NpmPyTorchApi", api)
    accum = "i32" if elem == "i8" else "f32"
    quant = ", quant=per_tensor(scale=1.0, zero_point=0)" if elem == "i8" else ""
    interp = NemInterpreter(device="nem_reference")
    interp.set_compute_backend("npm")
    program = interp.load_string(GEMM.format(elem, quant, accum))
    result = interp.run(program, inputs={"S": bytes(32)})
    assert (result.status, seen) == ("completed", [(None, accum, precision)])


def test_one_opcode_may_have_a_backend_of_its_own() -> None:
    interp = NemInterpreter()
    interp.set_compute_backend("numpy")
    interp.set_opcode_backend("relu", Printed())
    both = RELU + "n = neg.sync in Y out Y\n"
    result = interp.run(interp.load_string(both), inputs={"A": DATA})
    np.testing.assert_array_equal(result.read_region("Y"), -np.maximum(DATA, 1))
    interp.set_compute_backend("numpy")  # a choice for all drops those for single opcodes
    result = interp.run(interp.load_string(both), inputs={"A": DATA})
    np.testing.assert_array_equal(result.read_region("Y"), -np.maximum(DATA, 0))


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        (lambda i: i.set_compute_backend("cuda"), "RUN09", "no backend `cuda`; known are `numpy`"),
        (lambda i: i.set_compute_backend(3), "RUN09", "needs `execute` and `supports`"),
        (lambda i: i.set_compute_backend(None), "RUN09", "needs `execute` and `supports`"),
        (lambda i: i.set_compute_backend(Printed), "RUN09", "give an object of it: `Printed()`"),
        (lambda i: i.set_opcode_backend("reluu", "numpy"), "RUN05", "no opcode `reluu`"),
        (lambda i: i.set_opcode_backend(3, "numpy"), "RUN05", "no opcode `3`"),
        (lambda i: i.set_opcode_backend("gemm", Printed()), "RUN09", "does not support `gemm`"),
        (lambda i: i.set_opcode_backend("core.Tea", "numpy"), "RUN09", "not support `core.Tea`"),
    ],
)
def test_what_is_no_backend_is_refused(
    call: Callable[[NemInterpreter], None], code: str, says: str
) -> None:
    found, message = refusal(lambda: call(NemInterpreter()))
    assert found == code
    assert says in message


class Leaving(Printed):
    """Code that ends the process, in what it is asked for."""

    def supports(self, opcode: str) -> bool:
        raise SystemExit(0)


class BindingBadly(Listed):
    def __init__(self, *, is_late: bool) -> None:
        self._is_late = is_late

    def bind(self, opcode: str, call: object) -> Callable[..., object]:
        return self._fail if self._is_late else self._fail()  # type: ignore[return-value]

    def _fail(self, *arguments: object) -> object:
        raise SystemExit(0)


def test_backends_that_leave_are_errors() -> None:
    assert refusal(lambda: run(Leaving()))[0] == "RUN09"
    assert refusal(lambda: NemInterpreter().set_opcode_backend("relu", Leaving()))[0] == "RUN09"
    for is_late in (False, True):
        result = run(BindingBadly(is_late=is_late))
        assert result.status == "error"
        assert "SystemExit: 0" in str(result.diagnostics[-1])


# Names


def test_a_registered_backend_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_FACTORIES", dict(backends._FACTORIES))
    register_backend("mine", Listed)
    np.testing.assert_array_equal(run("mine").read_region("Y"), DATA)
    assert "mine" in backends.backend_names()


def installed(
    monkeypatch: pytest.MonkeyPatch, **loads: Callable[[], object]
) -> Callable[..., object]:
    """Pretend that packages with these entry points are installed."""

    def entry_points(*, group: str) -> list[SimpleNamespace]:
        assert group == "nacre.backends"
        return [SimpleNamespace(name=name, load=load) for name, load in loads.items()]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.setattr(backends, "entry_points", entry_points)
    return entry_points


def missing_dependency() -> object:
    raise ImportError("no module named torch")


def test_backends_of_installed_packages_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(
        monkeypatch,
        theirs=lambda: Listed,
        incomplete=lambda: missing_dependency(),
        failing=lambda: lambda: 1 // 0,
        other=lambda: lambda: "no backend",
    )
    np.testing.assert_array_equal(run("theirs").read_region("Y"), DATA)
    assert {"numpy", "npm", "theirs", "other"} <= set(backends.backend_names())
    expectations = {
        "incomplete": "backend `incomplete` cannot be loaded: no module named torch",
        "failing": "backend `failing` cannot be made: ",
        "other": "backend `other` lacks `execute` or `supports`",
        "unknown": "no backend `unknown`; known are `numpy`, `npm`, `theirs`",
    }
    for name, says in expectations.items():
        code, message = refusal(lambda name=name: run(name))  # type: ignore[misc]
        assert code == "RUN09"
        assert says in message


def test_the_protocol_is_what_a_backend_is_recognised_by() -> None:
    assert isinstance(Listed(), ComputeBackend)
    assert isinstance(Printed(), ComputeBackend)
    assert not isinstance(object(), ComputeBackend)
