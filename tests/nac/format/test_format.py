"""Reading and writing are exact inverses, and nothing is copied on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.module import Labels
from nacre.nac.format.file import examine, read, to_bytes, write
from nacre.nac.format.reading import CODECS
from nacre.nac.format.values import NacFile, NameEntry, Tensor, constant
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.lower import lower
from nacre.nac.spec.header import SECTIONS, VERSIONS
from tests.nac.files import FIXTURES, changed, headed, patched, small
from tests.nac.strategies import files


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_fixture_is_written_back_byte_for_byte(path: Path, tmp_path: Path) -> None:
    file = read(path)
    write(file, tmp_path / "copy.nac")
    assert (tmp_path / "copy.nac").read_bytes() == path.read_bytes()
    assert read(tmp_path / "copy.nac") == file


@given(files())
def test_what_is_written_reads_back(file: NacFile) -> None:
    raw = to_bytes(file)
    made = examine(raw)
    # A gap is only a warning; anything else would be a fault of the reader.
    assert [d for d in made.findings if d.severity == "error"] == []
    assert made.file == file
    assert to_bytes(made.file) == raw


def test_weights_are_views_of_the_file() -> None:
    raw = to_bytes(small())
    tensor = read(raw).data.tensors[0]
    assert isinstance(tensor.data, memoryview)
    assert tensor.data.obj is raw


@pytest.mark.parametrize(
    "value", [None, True, False, 0, -(2**63), 1.5, -0.0, "", "päth", (), (1, -2), (1.5, 2.0)]
)
def test_a_constant_keeps_its_value_and_type(value: object) -> None:
    made = constant(7, value)  # type: ignore[arg-type]
    assert made.value == value
    assert type(made.value) is type(value)


def test_one_and_one_point_zero_and_true_are_three_constants() -> None:
    made = Assembler()
    x = made.input("x")
    for number in (1, 1.0, True, 0.0, -0.0):
        x = made.call("nac.add", x, number)
    made.output(x)
    assert len(made.file().constants) == 5


def test_a_file_is_the_same_each_time() -> None:
    assert to_bytes(small()) == to_bytes(small())


def test_a_header_has_the_size_of_its_version() -> None:
    assert [VERSIONS[byte].size for byte in (1, 2)] == [88, 100]


def test_a_section_is_declared_once_and_has_a_reader() -> None:
    tags = {tag for version in VERSIONS.values() for tag in version.sections}
    assert tags == SECTIONS.keys() == CODECS.registered.keys()


LIMITS = {
    "name": lambda f: changed(f, CMAP=(NameEntry(20, "x" * 256),)),
    "operand offset": lambda f: changed(
        f, OPS=(*f.instructions[:-1], type(f.instructions[-1])(3, 0, (2, 0, 0), (-40000, -1)))
    ),
    "dimension": lambda f: changed(
        f,
        DATA=type(f.data)(
            f.data.parameters, f.data.inputs, (Tensor(1, 0, (2**32,), b""), f.data.tensors[1])
        ),
    ),
    "header": lambda f: headed(f, inputs=70000),
}


@pytest.mark.parametrize("what", LIMITS)
def test_what_does_not_fit_in_its_field_is_refused_before_anything_is_written(
    what: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        write(LIMITS[what](small()), tmp_path / "never.nac")
    (found,) = refused.value.diagnostics
    assert found.code == "NAC15"
    assert found.help
    assert list(tmp_path.iterdir()) == []


def _many_signatures() -> Assembler:
    made = Assembler()
    x = made.input("x")
    for count in range(256):
        x = made.call("nac.pass", x, *[0] * count)
    made.output(x)
    return made


def _many_operations() -> Assembler:
    made = Assembler()
    x = made.input("x")
    for count in range(237):
        x = made.call(f"aten.op{count}.default", x)
    made.output(x)
    return made


def _many_constants() -> Assembler:
    made = Assembler()
    x = made.input("x")
    for count in range(32767):
        x = made.call("nac.add", x, count)
    made.output(x)
    return made


@pytest.mark.parametrize("make", [_many_signatures, _many_operations, _many_constants])
def test_more_than_ids_reach_is_refused_with_a_remedy(make: object) -> None:
    assert callable(make)
    with pytest.raises(InputError) as refused:
        make().file()
    (found,) = refused.value.diagnostics
    assert (found.code, bool(found.help)) == ("NAC15", True)


def test_an_integer_that_lists_cannot_hold_is_refused() -> None:
    made = Assembler()
    x = made.input("x")
    with pytest.raises(InputError, match="NAC15") as refused:
        made.call("nac.view", x, (2**31, 1))
    assert "instruction 1, `nac.view`: " in refused.value.diagnostics[0].message


def test_a_limit_of_a_build_says_where_and_what_helps() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4,))
    weight = builder.constant(np.ones(4), "f8e4m3")
    made = builder.add("BinOp", x, builder.add("Cast", weight, to="f32"), op="Add")
    module = replace(builder.module(made), labels=Labels(nodes={1: "scale", 2: "widen"}))
    with pytest.raises(InputError) as refused:
        lower(module)
    (found,) = refused.value.diagnostics
    assert found.code == "NAC15"
    assert "Cast `widen`: weight `scale`: its elements are f8e4m3" in found.message
    assert found.help is not None
    assert found.help.startswith("cast the weight")


def test_an_offset_that_is_too_far_says_of_which_instruction(tmp_path: Path) -> None:
    file = patched(small(), 4, d=(-40_000,))
    with pytest.raises(InputError) as refused:
        write(file, tmp_path / "never.nac")
    assert "instruction 4: operand offset -40,000" in refused.value.diagnostics[0].message


def test_a_weight_is_stored_in_its_own_type() -> None:
    import ml_dtypes

    made = Assembler()
    arrays = [np.arange(4).astype(t) for t in
              (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.int16,
               np.int8, np.uint8, np.bool_)]  # fmt: skip
    ids = [made.weight(f"w{at}", array) for at, array in enumerate(arrays)]
    made.output(*[made.parameter(id_) for id_ in ids])
    assert [t.dtype for t in made.file().data.tensors] == list(range(10))
    from nacre.nac.run.model import load

    for one, other in zip(load(to_bytes(made.file())).run({}), arrays, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
