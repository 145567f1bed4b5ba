"""Element types that the format has no code for: at every border of a file, as Core IR has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nacre import nac
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.nac.program.canonical import canonical
from nacre.nac.program.lift import lift
from nacre.nac.spec.elements import STORED_AS
from tests.cli.runner import invoke
from tests.compile.bundle.test_nibbles import BODIES, drawn, drawn_for, module_of


@pytest.mark.parametrize("name", ["i4", "u4"])
@pytest.mark.parametrize("label", BODIES)
def test_a_file_has_the_values_of_the_module(label: str, name: str, tmp_path: Path) -> None:
    module = module_of(BODIES[label], name)
    inputs = {str(op.attributes["name"]): drawn_for(op.type.dtype, op.type.shape)
              for op in module.inputs}  # fmt: skip
    path = tmp_path / "model.nac"
    nac.save(nac.build(module), path)
    assert nac.verify(path) == []
    model, (wanted,) = nac.load(path), evaluate(module, inputs)
    for timed in (False, True):  # with kernels that are joined, and one by one
        (found,) = model.session(timed=timed).run(inputs)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


def kept_state(name: str, shape: tuple[int, ...] = (3, 5)) -> Module:
    """A constant that is an operand, an output, and what a state starts as."""
    values = drawn_for("f32", shape) if name[0] == "f" else drawn(name, shape, 5).astype(np.int64)
    builder = Builder()
    x, s = builder.input("x", name, shape), builder.input("s", name, shape)
    known = builder.constant(values, name)
    new = builder.add("Where", builder.add("Compare", x, known, op="Lt"), s, x)
    builder.state("s", new, known)
    return builder.module(new, known)


@pytest.mark.parametrize("name", STORED_AS)
def test_constants_and_states_keep_their_type(name: str) -> None:
    module = kept_state(name)
    plain = canonical(module)
    assert canonical(plain) == plain
    model = nac.build(module)
    assert lift(model) == plain
    x = drawn_for(name, (3, 5)).astype(GRAPH_TYPES[name].dtype)
    found, wanted = model.session().run({"x": x}), evaluate(module, {"x": x})
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype == GRAPH_TYPES[name].dtype
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", ["i4", "u4"])
def test_arrays_in_files_have_whole_bytes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nac.save(nac.build(module_of(BODIES["transposed"], name)), tmp_path / "model.nac")
    x, whole = drawn(name, (3, 5)), np.int8 if name == "i4" else np.uint8
    for at, array in enumerate((x, x.astype(whole))):
        np.save(tmp_path / f"x{at}.npy", array)
        out = tmp_path / f"y{at}.npy"
        command = ("nac", "run", tmp_path / "model.nac", "--input", f"x={tmp_path / f'x{at}.npy'}",
                   "--output", f"0={out}")  # fmt: skip
        done = invoke(capsys, *command)
        assert done.status == 0, done.text
        found = np.load(out)
        assert found.dtype == whole
        np.testing.assert_array_equal(found, x.T.astype(whole))
    np.save(tmp_path / "far.npy", np.full((3, 5), 100, whole))
    given = f"x={tmp_path / 'far.npy'}"
    done = invoke(capsys, "nac", "run", tmp_path / "model.nac", "--input", given)
    assert done.status == 1
