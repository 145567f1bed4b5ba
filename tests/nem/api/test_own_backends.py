"""Backends of users' own, in both forms, and the operations that only they know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nacre.nem.run.memory.arrays import RegionView
from neminterp import InputError, NemInterpreter
from tests.nem.api.own_backends import DATA, HEAD, SPLIT, Attributes, Listed, Printed, refusal, run


def test_a_backend_of_the_printed_form_fills_its_one_output() -> None:
    backend = Printed()
    np.testing.assert_array_equal(run(backend).read_region("Y"), np.maximum(DATA, 1))
    assert backend.seen == ("relu", [(4, 8)], {"saturate": False})


def test_a_backend_with_a_list_fills_every_output() -> None:
    result = run(Listed(), SPLIT)
    np.testing.assert_array_equal(result.read_region("P"), DATA[:2])
    np.testing.assert_array_equal(result.read_region("Q"), DATA[2:])


def test_a_backend_may_return_arrays_instead() -> None:
    class Returning(Listed):
        def execute(
            self,
            opcode: str,
            inputs: list[RegionView],
            outputs: list[RegionView],
            attrs: Attributes,
        ) -> object:
            half = np.asarray(inputs[0])
            return (half[:2], half[2:]) if opcode == "split" else np.maximum(half, 3)

    np.testing.assert_array_equal(run(Returning()).read_region("Y"), np.maximum(DATA, 3))
    np.testing.assert_array_equal(run(Returning(), SPLIT).read_region("Q"), DATA[2:])


def test_a_backend_is_told_attributes_types_and_quantisation() -> None:
    class Curious(Printed):
        def execute(
            self, opcode: str, inputs: list[RegionView], output: RegionView, attrs: Attributes
        ) -> None:
            (x,) = inputs
            assert x.elem is not None
            assert x.quant is not None
            self.told = (x.elem.name, x.quant.scale.tolist(), attrs, x.flags.writeable)
            output[...] = 0

    quant = "quant=per_tensor(scale=0.5, zero_point=1)"
    text = f"""{HEAD}
let U = region(B, 0, 32) elem=i8, shape=[1, 4, 4, 2], layout=NHWC, {quant}
let V = region(B, 32, 8) elem=i8, shape=[1, 2, 2, 2], layout=NHWC, {quant}
p = maxpool.sync in U out V kernel_shape=[2, 2] pads=[0, 0, 0, 0] strides=[2, 2]
"""
    backend = Curious()
    assert run(backend, text).status == "completed"
    elem, scale, attrs, writeable = backend.told
    assert (elem, scale, writeable) == ("i8", [0.5], False)
    assert (tuple(attrs["kernel_shape"]), tuple(attrs["strides"])) == ((2, 2), (2, 2))


def answering(answer: Callable[[list[RegionView]], object]) -> Listed:
    class Answering(Listed):
        def execute(
            self,
            opcode: str,
            inputs: list[RegionView],
            outputs: list[RegionView],
            attrs: Attributes,
        ) -> object:
            outputs[0][...] = 99
            return answer(inputs)

    return Answering()


def divide(_: object) -> object:
    return 1 // 0


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (divide, "ZeroDivisionError: "),
        (lambda _: np.zeros((8, 4), np.int8), "gave shape [8, 4], expected [4, 8]"),
        (lambda _: np.zeros(32, np.int8), "gave shape [32], expected [4, 8]"),
        (lambda x: np.maximum(x[0], 0).astype(np.float32), "gave float32, expected int8"),
        (lambda x: [x[0], x[0]], "gave 2 outputs, expected 1"),
        (lambda _: "nonsense", "gave shape [], expected [4, 8]"),
        (lambda x: x[0].__setitem__(0, 1), "read-only"),
    ],
)
def test_a_backend_that_fails_stops_the_run_and_changes_nothing(
    answer: Callable[[list[RegionView]], object], says: str
) -> None:
    result = run(answering(answer))
    assert result.status == "error"
    found = result.diagnostics[0]
    assert (found.code, found.location.line) == ("RUN04", 7)
    assert says in found.message
    assert result.read_region("Y").tobytes() == b"\xff" * 32
    assert result.read_region("X").tobytes() == DATA.tobytes()


def test_a_backend_whose_supports_fails_supports_nothing() -> None:
    class Broken(Listed):
        def supports(self, opcode: str) -> bool:
            raise RuntimeError

    assert refusal(lambda: run(Broken()))[0] == "RUN09"


@pytest.mark.parametrize("place", ["relu.sync in X out Y @deterministic", "loop"])
def test_deterministic_tasks_need_a_backend_that_says_it_is(place: str) -> None:
    text = HEAD + (
        "loop i in [0..0] @deterministic:\n    r = relu.sync in X out Y\nendloop\n"
        if place == "loop"
        else f"r = {place}\n"
    )
    code, message = refusal(lambda: run(Printed(), text))
    assert code == "RUN09"
    assert message == "backend `Printed` does not declare itself deterministic"
    assert run(Listed(), text).status == "completed"
    assert run("numpy", text).status == "completed"


# compute (decision 109)


def generic(op: str, attributes: str = "") -> str:
    return HEAD + f'c = compute.async in X out Y op="{op}" {attributes}\n'


@pytest.mark.parametrize(
    ("op", "expected"), [("core.Relu", np.maximum(DATA, 0)), ("core.Neg", -DATA)]
)
def test_an_operation_of_core_runs_by_its_name(op: str, expected: np.ndarray[Any, Any]) -> None:
    np.testing.assert_array_equal(run("numpy", generic(op)).read_region("Y"), expected)


def test_an_operation_of_core_takes_its_attributes() -> None:
    text = (
        HEAD
        + """
let Z = region(B, 32, 32) elem=i8, shape=[8, 4], layout=MN
c = compute.async in X out Z op="core.Transpose" permutation=[1, 0]
"""
    )
    np.testing.assert_array_equal(run("numpy", text).read_region("Z"), DATA.T)


@pytest.mark.parametrize(
    ("op", "help_"),
    [
        ("core.relu", "did you mean `core.Relu`?"),
        ("core.Nothing_Like_It", "there are core."),
        ("secret", 'give one that does with `set_opcode_backend("secret", backend)`'),
        ("vendor.secret", 'give one that does with `set_opcode_backend("vendor.secret", backend)`'),
    ],
)
def test_an_operation_that_no_backend_knows_is_refused_at_its_place(op: str, help_: str) -> None:
    with pytest.raises(InputError) as caught:
        run("numpy", generic(op))
    (found,) = caught.value.diagnostics
    assert (found.code, found.severity) == ("SIG22", "error")
    assert found.message == f"backend `numpy` does not support `{op}`"
    assert found.location.line == 7
    assert (found.help or "").startswith(help_)


@pytest.mark.parametrize("op", ["vendor.secret", "secret", "relu6", "a b"])
def test_an_operation_of_a_backends_own_goes_to_it(op: str) -> None:
    class Vendor(Printed):
        def supports(self, opcode: str) -> bool:
            return opcode == op

    for opcode in (op, "compute"):
        interp = NemInterpreter()
        program = interp.load_string(generic(op, "alpha=3"))
        with pytest.raises(InputError) as caught:
            interp.run(program, inputs={"A": DATA})
        (found,) = caught.value.diagnostics
        assert f'`set_opcode_backend("{op}", backend)`' in (found.help or "")
        interp.set_opcode_backend(opcode, Vendor())  # the call that the help names
        result = interp.run(program, inputs={"A": DATA})
        np.testing.assert_array_equal(result.read_region("Y"), np.maximum(DATA, 1))


def test_an_operation_is_told_its_attributes_without_its_name() -> None:
    class Vendor(Printed):
        def supports(self, opcode: str) -> bool:
            return opcode == "vendor.secret"

    backend = Vendor()
    run(backend, generic("vendor.secret", "alpha=3"))
    assert backend.seen == ("vendor.secret", [(4, 8)], {"alpha": 3})
