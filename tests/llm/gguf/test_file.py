"""GGUF files that are right: what they say, in both byte orders, as the package reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nacre.llm import read_gguf
from nacre.llm.gguf.file import parse_gguf
from tests.llm.gguf_bytes import ARRAY, U32, Pair, gguf_bytes, small_file

EXPECTED = {
    "a.u8": 200, "a.i8": -3, "a.u16": 60_000, "a.i16": -300, "a.u32": 4_000_000_000,
    "a.i32": -70_000, "a.f32": 0.5, "a.bool": True, "general.architecture": "llama",
    "a.u64": 1 << 63, "a.i64": -(1 << 62), "a.f64": 0.1, "a.texts": ["one", "zwölf", ""],
    "a.ids": [1, 2, 3],
}  # fmt: skip


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_a_file_says_the_same_in_either_byte_order(big: bool, version: int) -> None:
    file = parse_gguf(small_file(big, version))
    assert (file.version, file.byte_order) == (version, "big" if big else "little")
    assert dict(file.metadata) == EXPECTED
    assert file.tensor("grid").tolist() == np.arange(12).reshape(3, 4).tolist()
    assert file.tensor("q8").tolist() == [[n / 4 for n in range(-16, 16)]] * 2
    assert file.tensors["q8"].shape == (2, 32)


def test_the_package_reads_the_same(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "small.gguf"
    path.write_bytes(small_file())
    theirs, ours = gguf.GGUFReader(path), read_gguf(path)
    fields = {k: f.contents() for k, f in theirs.fields.items() if not k.startswith("GGUF.")}
    assert fields == dict(ours.metadata)
    assert {t.name: t.data_offset for t in theirs.tensors} == {
        name: row.offset for name, row in ours.tensors.items()
    }


def test_what_the_package_writes_is_read(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "written.gguf"
    weights = np.random.default_rng(1).normal(size=(6, 64)).astype(np.float32)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_token_list(["a", "b"])
    quantised = gguf.quantize(weights, gguf.GGMLQuantizationType.Q5_1)
    writer.add_tensor("w", quantised, raw_dtype=gguf.GGMLQuantizationType.Q5_1)
    writer.add_tensor("b", weights[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = read_gguf(path)
    assert file.metadata["llama.block_count"] == 2
    assert file.metadata["tokenizer.ggml.tokens"] == ["a", "b"]
    expected = gguf.dequantize(quantised, gguf.GGMLQuantizationType.Q5_1)
    assert np.array_equal(file.tensor("w"), expected)
    assert np.array_equal(file.tensor("b"), weights[0])


def test_arrays_nest() -> None:
    rows = [[1, 2], [3, 4, 5], []]
    data = gguf_bytes([Pair("rows", ARRAY, [], ARRAY)])
    # The writer has texts inside of arrays only: the rest by hand.
    tail = b"".join(
        U32.to_bytes(4, "little")
        + len(row).to_bytes(8, "little")
        + b"".join(n.to_bytes(4, "little") for n in row)
        for row in rows
    )
    whole = data[:-8] + len(rows).to_bytes(8, "little") + tail
    assert parse_gguf(whole).metadata["rows"] == rows


def test_a_tensor_that_is_not_there_is_named_with_the_one_that_is_meant() -> None:
    with pytest.raises(KeyError, match=r"no tensor `gird`.*`grid`"):
        parse_gguf(small_file()).tensor("gird")


def test_nothing_of_a_tensor_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "sparse.gguf"
    tensor_bytes = 1 << 38
    head = bytearray(small_file())
    path.write_bytes(head)
    from tests.llm.gguf_bytes import Tensor

    entry = gguf_bytes((), [Tensor("w", (tensor_bytes // 4,), 0, b"")])
    path.write_bytes(entry)
    with path.open("r+b") as file:
        file.truncate(len(entry) + tensor_bytes)
    assert read_gguf(path).tensors["w"].size_bytes == tensor_bytes
