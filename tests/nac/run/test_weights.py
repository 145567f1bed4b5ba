"""Weights: quantised layouts, external files, and that none is copied before it is used."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nacre.base.diagnostics import InputError
from nacre.core.values import Array
from nacre.nac.format.external import with_weights_digest
from nacre.nac.format.file import read, to_bytes, write
from nacre.nac.format.scales import scale_problem
from nacre.nac.format.values import NacFile, Tensor
from nacre.nac.program.assembly import Assembler
from nacre.nac.quantise.apply import quantise
from nacre.nac.run.dequantisation import dequantize
from nacre.nac.run.model import load
from nacre.nac.save import Storage, save
from nacre.nac.verify import verify
from tests.nac.files import FIXTURES, FOLDER, small

X = np.array([[1, 2, 3], [-1, 0.5, 2]], np.float32)


def _scales(values: list[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


@given(st.data())
def test_dequantisation_is_a_product_with_scales(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    kind = data.draw(st.sampled_from(["tensor", "channel", "block"]))
    count = int(np.prod(shape))
    block = data.draw(st.integers(1, 9))
    stored = -(-count // block) * block if kind == "block" else count
    elements = data.draw(st.lists(st.integers(-128, 127), min_size=stored, max_size=stored))
    axis = data.draw(st.integers(0, len(shape) - 1))
    scales_needed = {"tensor": 1, "channel": shape[axis], "block": stored // block}[kind]
    finite = st.floats(-4, 4, width=32)
    scales = data.draw(st.lists(finite, min_size=scales_needed, max_size=scales_needed))
    raw = struct.pack(f"<{stored}b", *elements)
    tensor = {
        "tensor": Tensor(1, 7, shape, raw, 2, _scales(scales)),
        "channel": Tensor(1, 7, shape, raw, 3, _scales(scales), axis),
        "block": Tensor(1, 7, (stored,), raw, 4, _scales(scales), 0, block, shape),
    }[kind]
    assert scale_problem(tensor) is None
    found = dequantize(tensor)
    assert (found.shape, found.dtype) == (shape, np.dtype(np.float32))
    for place in np.ndindex(*shape):
        flat = int(np.ravel_multi_index(place, shape))
        scale = {"tensor": 0, "channel": place[axis], "block": flat // block}[kind]
        assert found[place] == np.float32(elements[flat]) * np.float32(scales[scale])


def test_a_tensor_without_axes_has_one_element_in_blocks() -> None:
    # The reference cannot load this.
    tensor = Tensor(1, 7, (64,), bytes([100, *[0] * 63]), 4, _scales([0.5]), 0, 64, ())
    assert scale_problem(tensor) is None
    assert dequantize(tensor) == np.float32(50)


def test_halves_are_widened_only_where_the_header_says_so() -> None:
    made = Assembler()
    x = made.input("x")
    w = made.parameter(made.weight("w", np.array([1.5], np.float16)))
    made.output(made.call("aten.mul.Tensor", x, w))
    for quant, dtype in ((0, np.float16), (1, np.float32)):
        given_x = np.ones(3, dtype)
        (found,) = load(to_bytes(made.file(quant=quant))).run({"x": given_x})
        assert found.dtype == dtype


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_weights_go_out_of_a_file_and_back(path: Path, tmp_path: Path) -> None:
    model = load(path)
    outside, inside = tmp_path / "outside.nac", tmp_path / "inside.nac"
    save(model, outside, weights="external")
    assert verify(outside) == []
    assert (tmp_path / "outside.safetensors").is_file()
    assert not read(outside).header.is_internal
    moved = load(outside)
    stored = np.load(path.with_suffix(".npz"))
    name = model.inputs[0].name
    one, other = (m.run({name: stored["in0"]})[0] for m in (model, moved))
    np.testing.assert_array_equal(one, other)
    save(moved, inside)
    assert inside.read_bytes() == path.read_bytes()


def test_external_weights_are_plain_safetensors(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    save(load(to_bytes(small())), tmp_path / "m.nac", weights="external")
    tensors = load_file(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(tensors["layer.bias"], np.array([0.5, -0.5], np.float32))


def test_external_weights_of_somebody_else_are_read(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    model = load(to_bytes(small()))
    save(model, tmp_path / "m.nac", weights="external")
    arrays = {"layer.weight": -np.ones((2, 3), np.float32), "layer.bias": np.zeros(2, np.float32)}
    save_file(arrays, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.nac").run({"x": X})[1], [[0], [0]])


def _rewritten(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    changed = change(header)
    text = json.dumps(header if changed is None else changed).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])


def _set(name: str, **fields: object) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        header[name].update(fields)

    return change


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "no-json": lambda path: path.write_bytes(struct.pack("<Q", 4) + b"{{{{"),
    "deep": lambda path: path.write_bytes(struct.pack("<Q", 9**5) + b"[" * 9**5),
    "no-tensor": lambda path: _rewritten(path, lambda h: {k: h[k] for k in h if "bias" not in k}),
    "type": lambda path: _rewritten(path, _set("layer.bias", dtype="F8_E4M3")),
    "shape": lambda path: _rewritten(path, _set("layer.bias", shape=[7])),
    "negative": lambda path: _rewritten(path, _set("layer.bias", shape=[-1, -2])),
    "offsets": lambda path: _rewritten(path, _set("layer.bias", data_offsets=[0, 1 << 60])),
    "row": lambda path: _rewritten(path, lambda h: {**h, "layer.bias": 7}),
    "quant": lambda path: _rewritten(
        path, lambda h: {**h, "__metadata__": {"nac_quant_meta": '{"layer.bias": 3}'}}
    ),
    "quant-code": lambda path: _rewritten(
        path,
        lambda h: {**h, "__metadata__": {"nac_quant_meta": '{"layer.bias": {"quant_code": 9}}'}},
    ),
    "scale": lambda path: _rewritten(
        path,
        lambda h: {
            **h,
            "__metadata__": {
                "nac_quant_meta": '{"layer.bias": {"quant_code": 2, "scales": [1e300]}}'
            },
        },
    ),
}

DAMAGE |= {
    "behind": lambda path: path.write_bytes(path.read_bytes() + b"xxxx"),
    "hole": lambda path: _rewritten(
        path, lambda h: {**h, "more": {"dtype": "U8", "shape": [1], "data_offsets": [40, 41]}}
    ),
    "overlap": lambda path: _rewritten(
        path, lambda h: {**h, "more": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}
    ),
    "other-row": lambda path: _rewritten(path, lambda h: {**h, "more": 7}),
}


def _doubled(path: Path, name: str, text: str) -> None:
    """A header in which a key stands twice; what is behind it is the same."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = f'{{"{name}": {text},'.encode() + raw[8 : 8 + length].strip()[1:]
    path.write_bytes(struct.pack("<Q", len(header)) + header + raw[8 + length :])


_ROW = '{"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}'
_TWICE = '{\\"a\\": {\\"quant_code\\": 0}, \\"a\\": {\\"quant_code\\": 1}}'
DAMAGE |= {
    "twice": lambda path: _doubled(path, "layer.bias", _ROW),
    "field-twice": lambda path: _doubled(path, "more", '{"dtype": "U8", "dtype": "U8"}'),
    "quant-twice": lambda path: _doubled(path, "__metadata__", f'{{"nac_quant_meta": "{_TWICE}"}}'),
}


@pytest.mark.parametrize(
    ("damage", "told"), [("twice", "`layer.bias` twice"), ("quant-twice", "`a` twice")]
)
def test_a_tensor_that_stands_twice_is_named(damage: str, told: str, tmp_path: Path) -> None:
    save(load(to_bytes(small())), tmp_path / "m.nac", weights="external")
    DAMAGE[damage](tmp_path / "m.safetensors")
    assert told in verify(tmp_path / "m.nac")[0].message


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_weights_have_a_code(damage: str, tmp_path: Path) -> None:
    save(load(to_bytes(small())), tmp_path / "m.nac", weights="external")
    DAMAGE[damage](tmp_path / "m.safetensors")
    errors = [d for d in verify(tmp_path / "m.nac") if d.severity == "error"]
    assert {d.code for d in errors} == {"NAC39"}
    with pytest.raises(InputError, match="NAC39"):
        load(tmp_path / "m.nac")


@pytest.mark.parametrize("damage", ["behind", "hole", "overlap", "other-row"])
def test_weights_that_the_library_refuses_are_refused(damage: str, tmp_path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    save(load(to_bytes(small())), tmp_path / "m.nac", weights="external")
    load_file(tmp_path / "m.safetensors")
    DAMAGE[damage](tmp_path / "m.safetensors")
    with pytest.raises(SafetensorError):
        load_file(tmp_path / "m.safetensors")


def test_a_tensor_that_nobody_knows_is_a_warning(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    save(load(to_bytes(small())), tmp_path / "m.nac", weights="external")
    arrays = load_file(tmp_path / "m.safetensors")
    save_file({**arrays, "lost": np.ones(3, np.float32)}, tmp_path / "m.safetensors")
    # As other writers have it: without the hash of the weights.
    write(with_weights_digest(read(tmp_path / "m.nac"), None), tmp_path / "m.nac")
    (found,) = verify(tmp_path / "m.nac")
    assert (found.code, found.severity) == ("NAC53", "warning")
    assert "`lost`" in found.message
    load(tmp_path / "m.nac").run({"x": X})


def _meta(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    def rewritten(header: dict[str, Any]) -> None:
        made = json.loads(header["__metadata__"]["nac_quant_meta"])
        change(made)
        header["__metadata__"]["nac_quant_meta"] = json.dumps(made)

    _rewritten(path, rewritten)


SCALES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no entry": (lambda path: _meta(path, lambda m: m.pop("layer.weight")), "no scales"),
    "no metadata": (lambda path: _rewritten(path, lambda h: h.pop("__metadata__") and None),
                    "no scales"),
    "code 0": (lambda path: _meta(path, lambda m: m["layer.weight"].update(quant_code=0)),
               "has no scales, and it has some"),
}  # fmt: skip


@pytest.mark.parametrize("quant", ["int8_tensor", "int8_channel", "block_fp8", "int4_group"])
@pytest.mark.parametrize("what", SCALES)
def test_integers_without_their_scales_are_refused(what: str, quant: str, tmp_path: Path) -> None:
    model, _ = quantise(load(to_bytes(small())), quant)
    save(model, tmp_path / "m.nac", weights="external")
    assert verify(tmp_path / "m.nac") == []
    change, told = SCALES[what]
    change(tmp_path / "m.safetensors")
    found = verify(tmp_path / "m.nac")
    assert {d.code for d in found} == {"NAC39"}
    assert told in found[0].message
    with pytest.raises(InputError, match="NAC39"):
        load(tmp_path / "m.nac")


def test_integers_of_a_model_need_no_scales_outside_either(tmp_path: Path) -> None:
    """Beside weights that are quantised, those that were integers from the start stay so."""
    made = Assembler()
    x = made.input("x")
    w = made.parameter(made.weight("w", np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)))
    i = made.parameter(made.weight("i", np.array([3, -4], np.int8)))
    made.output(made.call("aten.linear.default", x, w), made.call("nac.neg", i))
    model, report = quantise(load(to_bytes(made.file())), "int8_tensor")
    assert [row.stored for row in report.weights] == ["INT8_TENSOR", "kept"]
    save(model, tmp_path / "m.nac", weights="external")
    assert verify(tmp_path / "m.nac") == []
    moved = load(tmp_path / "m.nac")
    assert moved.run({"x": X})[1].tolist() == [-3, 4]
    save(moved, tmp_path / "inside.nac")
    assert (tmp_path / "inside.nac").read_bytes() == to_bytes(model.file)


def test_internal_weights_are_not_replaced_by_a_file_beside(tmp_path: Path) -> None:
    # The reference prefers a file of that name in silence.
    write(small(), tmp_path / "m.nac")
    (tmp_path / "m.safetensors").write_bytes(b"junk")
    assert verify(tmp_path / "m.nac") == []


def test_a_directory_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, expected the name of a file") as refused:
        save(load(to_bytes(small())), tmp_path, weights="external")
    assert [d.code for d in refused.value.diagnostics] == ["NAC50"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("weights", ["internal", "external"])
def test_a_folder_that_is_missing_is_named(tmp_path: Path, weights: Storage) -> None:
    with pytest.raises(InputError, match="does not exist") as refused:
        save(load(to_bytes(small())), tmp_path / "missing" / "m.nac", weights=weights)
    assert [d.code for d in refused.value.diagnostics] == ["NAC50"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("weights", ["externl", "both", "", None, 3, ["internal"]])
def test_weights_lie_inside_or_beside(tmp_path: Path, weights: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match="expected `internal` or `external`") as refused:
        save(load(to_bytes(small())), tmp_path / "m.nac", weights=weights)
    assert [d.code for d in refused.value.diagnostics] == ["NAC50"]
    assert list(tmp_path.iterdir()) == []


def test_verify_notices_other_bytes_beside(tmp_path: Path) -> None:
    path, beside = tmp_path / "m.nac", tmp_path / "m.safetensors"
    save(load(to_bytes(small())), path, weights="external")
    assert verify(path) == []
    whole = beside.read_bytes()
    beside.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    (found,) = verify(path)
    assert found.code == "NAC39"
    assert sha256(whole).hexdigest()[:16] in found.message
    assert "restore the weights" in str(found.help)
    again = tmp_path / "again.nac"
    save(load(path), again, weights="external")  # loading stays fast and takes them
    assert verify(again) == []


def test_loading_reads_no_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    from nacre.nac.run import dequantisation, weights

    used: list[int] = []
    real = dequantisation.dequantize

    def noted(tensor: Tensor) -> Array:
        used.append(tensor.id)
        return real(tensor)

    monkeypatch.setattr(weights, "dequantize", noted)
    model = load(FOLDER / "mlp.INT8_TENSOR.v16.nac")
    assert used == []
    model.run({"input": np.zeros((1, 64), np.float32)})
    model.run({"input": np.zeros((1, 64), np.float32)})
    assert sorted(used) == [1, 2, 3, 4, 5, 6]  # once, not for each run


def test_any_byte_but_zero_is_true() -> None:
    file: NacFile = small()
    data = replace(file.data, tensors=(Tensor(1, 9, (2, 3), bytes([0, 1, 2, 3, 255, 0])),
                                       file.data.tensors[1]))  # fmt: skip
    found = dequantize(data.tensors[0])
    np.testing.assert_array_equal(found, [[False, True, True], [True, True, False]])


@pytest.mark.parametrize(
    ("tensor", "told"),
    [
        (Tensor(1, 7, (2,), b"ab", 2, b""), "0 scales, expected one"),
        (Tensor(1, 7, (2,), b"ab", 2, _scales([1.0, 2.0])), "2 scales, expected one"),
        (Tensor(1, 7, (2, 1), b"ab", 3, _scales([1.0]), -1), "axis -1 of a tensor of rank 2"),
        (Tensor(1, 7, (2,), b"ab", 4, _scales([1.0]), 0, -2, (2,)), "blocks of -2 elements"),
        (Tensor(1, 7, (2,), b"ab", 4, _scales([1.0]), 0, 2, (-1, -2)),
         "its own shape has a dimension below 0"),
        (Tensor(1, 7, (2,), b"ab", 5, bytes(8), 0, 4, (4,)), "its elements are i8, expected u8"),
        (Tensor(1, 8, (3,), b"abc", 5, bytes(8), 0, 3, (6,)),
         "blocks of 3 elements, 2 of which share a byte"),
        (Tensor(1, 8, (2,), b"ab", 5, bytes(4), 0, 2, (4,)),
         "2 scales and minimums for 2 blocks, expected 4"),
        (Tensor(1, 8, (3,), b"abc", 5, bytes(8), 0, 2, (4,)),
         "6 elements are stored, 4 in blocks of 2 need 4"),
    ],
)  # fmt: skip
def test_scales_that_do_not_fit_are_named(tensor: Tensor, told: str) -> None:
    """What a hostile file of weights may say of its own."""
    assert scale_problem(tensor) == told
