"""Modules in files: what is saved is what is loaded, and a file from a stranger does no harm."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.storage import INLINE_ELEMENTS, load, save
from nacre.core.text.printer import print_module
from nacre.core.verify import verify
from tests.core.modules import modules

Array = npt.NDArray[Any]
BIG = INLINE_ELEMENTS + 1


def holding(*arrays: Array, dtype: str | None = None) -> Module:
    build = Builder()
    return build.module(*[build.constant(array, dtype) for array in arrays])


def stored(folder: Path) -> Path:
    """The file beside a text."""
    (found,) = folder.glob("*.safetensors")
    return found


def findings(path: Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        load(path)
    return caught.value.diagnostics


@given(module=modules())
def test_any_module_is_loaded_as_it_was_saved(
    module: Module, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("saved") / "m.core"
    save(module, path)
    assert load(path) == module


@pytest.mark.parametrize("dtype", [*GRAPH_TYPES])
def test_big_constants_of_every_type_keep_their_bits(dtype: str, tmp_path: Path) -> None:
    element = GRAPH_TYPES[dtype]
    random = np.random.default_rng(0)
    if element.bits < 8 or element.kind == "bool":
        low, high = int(element.lowest), int(element.highest)
        array = random.integers(low, high, (3, BIG), endpoint=True).astype(element.dtype)
    else:  # NaN with any bits among them
        raw = random.bytes(3 * BIG * element.dtype.itemsize)
        array = np.frombuffer(raw, element.dtype).reshape(3, BIG)
    module = holding(array, dtype=dtype)
    save(module, tmp_path / "m.core")
    again = load(tmp_path / "m.core")
    assert again == module
    assert again.operations[0].attributes["data"].array.dtype == element.dtype
    assert verify(again, "nacre-1") == []


def test_the_text_refers_to_a_file_that_others_can_read(tmp_path: Path) -> None:
    big, small = np.arange(BIG, dtype=np.float32), np.ones(INLINE_ELEMENTS, np.float32)
    save(holding(big, small), tmp_path / "m.core")
    first, second, outputs = (tmp_path / "m.core").read_text().splitlines()
    beside = stored(tmp_path)
    assert first == (
        f'%0 = ConstTensor () {{dtype=f32, file="{beside.name}", key="0", '
        "shape=[65]} : tensor<f32[65]>"
    )
    assert second.startswith("%1 = ConstTensor () {data=[1.0, 1.0")
    assert outputs == "outputs: %0, %1"
    assert (load_file(beside)["0"] == big).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.core", beside.name]
    digest = hashlib.sha256(beside.read_bytes()).hexdigest()
    assert beside.name == f"m.core.{digest[:16]}.safetensors"


def test_a_file_that_others_wrote_is_read(tmp_path: Path) -> None:
    given: dict[str, Array] = {"b": np.ones(1), "a": np.arange(6).reshape(2, 3)}
    save_file(given, tmp_path / "w.safetensors", metadata={"format": "np"})
    reference(tmp_path, 'dtype=i64, file="w.safetensors", key="a", shape=[2, 3]', "i64[2, 3]")
    data = load(tmp_path / "m.core").operations[0].attributes["data"]
    assert (data.array == given["a"]).all()


def reference(folder: Path, attributes: str, type_: str = "f32[2]") -> Path:
    path = folder / "m.core"
    path.write_text(f"%0 = ConstTensor () {{{attributes}}} : tensor<{type_}>\noutputs: %0\n")
    return path


def test_one_array_in_several_places_is_stored_once(tmp_path: Path) -> None:
    module = holding(np.ones(BIG))
    op = module.operations[0]
    twice = Module((op, type(op)(1, op.opcode, (), op.attributes, op.type)), (0, 1))
    save(twice, tmp_path / "m.core")
    assert list(load_file(stored(tmp_path))) == ["0"]
    again = load(tmp_path / "m.core")
    assert again == twice
    assert again.operations[0].attributes["data"] is again.operations[1].attributes["data"]


def test_a_module_without_big_constants_is_one_file(tmp_path: Path) -> None:
    module = holding(np.ones(3, np.float32))
    save(module, str(tmp_path / "m.core"))
    assert [p.name for p in tmp_path.iterdir()] == ["m.core"]
    assert (tmp_path / "m.core").read_text() == print_module(module)


def test_the_places_of_what_was_loaded_are_those_of_the_text(tmp_path: Path) -> None:
    save(holding(np.ones(BIG)), tmp_path / "m.core")
    module = load(tmp_path / "m.core")
    assert module.source_spans is not None
    assert module.source_spans.source.name == str(tmp_path / "m.core")


@pytest.mark.parametrize(
    "name",
    [
        "../w.safetensors",
        "/etc/w.safetensors",
        "sub/w.safetensors",
        "sub\\\\w.safetensors",
        "C:w.safetensors",
        "..safetensors",
        "/etc/passwd",
        "w.bin",
        "",
        "w.safetensors\\u0000",
        "link.safetensors",
        "circle.safetensors",
    ],
)
def test_nothing_outside_of_the_folder_is_read(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    (folder / "sub").mkdir(parents=True)
    for place in (tmp_path, folder / "sub"):
        save_file({"a": np.zeros(2, np.float32)}, place / "w.safetensors")
    (folder / "w.bin").write_bytes((tmp_path / "w.safetensors").read_bytes())
    (folder / "link.safetensors").symlink_to(tmp_path / "w.safetensors")
    (folder / "circle.safetensors").symlink_to(folder / "circle.safetensors")
    path = reference(folder, f'dtype=f32, file="{name}", key="a", shape=[2]')
    (found,) = findings(path)
    assert found.code in ("STO02", "STO01")
    assert found.code == "STO02" or name == "circle.safetensors"
    assert found.location.line == 1


@pytest.mark.parametrize(
    ("attributes", "telling"),
    [
        ('dtype=f32, file="w.safetensors", shape=[2]', "needs a string `file`"),
        ('dtype=f32, key="a", shape=[2]', "needs a string `file`"),
        ('dtype=f32, file="w.safetensors", key=a, shape=[2]', "needs a string `file`"),
        ('data=[1.0, 2.0], dtype=f32, file="w.safetensors", key="a", shape=[2]', "no `data`"),
        ('dtype=f32, file="w.safetensors", key="z", shape=[2]', "holds no tensor `z`"),
        ('dtype=f32, file="w.safetensors", key="__metadata__", shape=[2]', "holds no tensor"),
        ('dtype=f32, file="w.safetensors", key="i", shape=[2]', "is I64[2], expected tensor<f32"),
        ('dtype=f32, file="w.safetensors", key="long", shape=[2]', "is F32[3], expected tensor"),
    ],
)
def test_a_reference_must_lead_to_a_tensor_of_the_declared_type(
    attributes: str, telling: str, tmp_path: Path
) -> None:
    given: dict[str, Array] = {
        "a": np.zeros(2, np.float32),
        "i": np.zeros(2, np.int64),
        "long": np.zeros(3, np.float32),
    }
    save_file(given, tmp_path / "w.safetensors", metadata={"x": "y"})
    (found,) = findings(reference(tmp_path, attributes))
    assert (found.code, found.location.line) == ("STO03", 1)
    assert telling in found.message


def packed(header: object, data: bytes = b"\0" * 8) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def row(first: int, last: int, dtype: str = "F32", shape: object = (2,)) -> object:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}}


@pytest.mark.parametrize(
    ("contents", "code"),
    [
        (b"", "STO01"),
        (b"\0" * 7, "STO01"),
        (b"\xff" * 8, "STO01"),
        (packed(b"{"), "STO01"),
        (packed(b"[]"), "STO01"),
        (packed(b"\xff\xfe"), "STO01"),
        (packed(b"[" * 100_000), "STO01"),
        (packed(row(0, 16)), "STO03"),
        (packed(row(-8, 0)), "STO03"),
        (packed(row(8, 16)), "STO03"),
        (packed(row(0, 4)), "STO03"),
        (packed(row(8, 0)), "STO03"),
        (packed(row(0, 8, "F99")), "STO03"),
        (packed(row(0, 8, shape=[-2])), "STO03"),
        (packed(row(0, 8, shape="two")), "STO03"),
        (packed({"a": 3}), "STO03"),
        (packed(row(0, 2**70)), "STO03"),
    ],
)
def test_a_corrupt_file_is_reported(contents: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(contents)
    path = reference(tmp_path, 'dtype=f32, file="w.safetensors", key="a", shape=[2]')
    (found,) = findings(path)
    assert (found.code, found.location.line) == (code, 1)


@pytest.mark.parametrize(
    ("dtype", "name", "data"), [("bool", "BOOL", b"\2\0"), ("i4", "I8", b"\10\0")]
)
def test_bytes_that_are_no_values_of_the_type_are_refused(
    dtype: str, name: str, data: bytes, tmp_path: Path
) -> None:
    (tmp_path / "w.safetensors").write_bytes(packed(row(0, 2, name), data))
    given = f'dtype={dtype}, file="w.safetensors", key="a", shape=[2]'
    (found,) = findings(reference(tmp_path, given, f"{dtype}[2]"))
    assert found.code == "STO03"


def test_a_missing_file_is_reported_once(tmp_path: Path) -> None:
    save(holding(np.ones(BIG), np.zeros(BIG)), tmp_path / "m.core")
    beside = stored(tmp_path)
    beside.unlink()
    (found,) = findings(tmp_path / "m.core")
    assert found.code == "STO01"
    assert f"`{beside.name}` does not exist" in found.message


def test_a_text_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"%0 = \xff")
    for name in ("missing", "binary", "."):
        (found,) = findings(tmp_path / name)
        assert found.code == "STO01"


def test_a_failure_leaves_the_old_files_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "m.core"
    save(holding(np.ones(BIG)), path)
    name = stored(tmp_path).name
    save(holding(np.ones(3, np.float32)), path)
    before = path.read_bytes()
    (tmp_path / name).mkdir()
    with pytest.raises(OSError, match="directory"):
        save(holding(np.ones(BIG)), path)
    assert path.read_bytes() == before
    assert sorted(found.name for found in tmp_path.iterdir()) == ["m.core", name]


def test_old_constants_go_with_the_text_that_named_them(tmp_path: Path) -> None:
    path = tmp_path / "m.core"
    save(holding(np.ones(BIG)), path)
    fixed = tmp_path / "m.core.safetensors"  # as nacre named it before
    old = stored(tmp_path).rename(fixed)
    path.write_text(re.sub(r'file="[^"]+"', 'file="m.core.safetensors"', path.read_text()))
    assert load(path) == holding(np.ones(BIG))
    (tmp_path / "other.safetensors").write_bytes(old.read_bytes())
    save(holding(np.zeros(BIG)), path)
    assert not fixed.exists()
    first = {p for p in tmp_path.iterdir() if p.suffix == ".safetensors"}
    save(holding(np.full(BIG, 2.0)), path)
    assert load(path) == holding(np.full(BIG, 2.0))
    left = {p for p in tmp_path.iterdir() if p.suffix == ".safetensors"}
    assert first & left == {tmp_path / "other.safetensors"}


def test_equal_constants_are_stored_once(tmp_path: Path) -> None:
    module = holding(np.ones(BIG), np.ones(BIG), np.full(BIG, -0.0), np.zeros(BIG))
    save(module, tmp_path / "m.core")
    assert list(load_file(stored(tmp_path))) == ["0", "2", "3"]
    assert load(tmp_path / "m.core") == module


def test_the_library_accepts_what_is_written(tmp_path: Path) -> None:
    save(holding(np.ones((5, BIG)), np.arange(BIG)), tmp_path / "m.core")
    with safe_open(stored(tmp_path), "np") as file:
        rows = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118 - no mapping
        assert {key: (row.get_dtype(), row.get_shape()) for key, row in rows.items()} == {
            "0": ("F64", [5, BIG]),
            "1": ("I64", [BIG]),
        }


def test_a_folder_is_no_file_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    builder = Builder()
    module = builder.module(builder.constant(np.zeros(100, np.float32)))
    with pytest.raises(IsADirectoryError):
        save(module, folder)
    assert list(tmp_path.iterdir()) == [folder]


def row_of(first: int, last: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": [(last - first) // 4], "data_offsets": [first, last]}


TWICE = f'{{"a": {json.dumps(row_of(0, 8))}, "a": {json.dumps(row_of(0, 8))}}}'


@pytest.mark.parametrize(
    ("contents", "telling"),
    [
        (packed({"a": row_of(0, 8)}, b"\0" * 12), "has 4 bytes that belong to no tensor"),
        (packed({"a": row_of(0, 8), "b": row_of(4, 12)}, b"\0" * 12), "that overlaps `a`"),
        (packed({"a": row_of(0, 8), "b": row_of(12, 16)}, b"\0" * 16), "does not follow"),
        (packed({"a": row_of(4, 12)}, b"\0" * 12), "does not follow"),
        (packed(TWICE.encode()), "has `a` twice in its header"),
    ],
)
def test_a_file_that_its_header_does_not_cover_exactly_is_refused(
    contents: bytes, telling: str, tmp_path: Path
) -> None:
    (tmp_path / "w.safetensors").write_bytes(contents)
    path = reference(tmp_path, 'dtype=f32, file="w.safetensors", key="a", shape=[2]')
    (found,) = findings(path)
    assert (found.code, found.location.line) == ("STO01", 1)
    assert telling in found.message
