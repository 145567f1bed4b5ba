"""What hosts give and ask for: right data arrives, wrong data is refused with a reason."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nacre.base.rendering import render_text
from neminterp import InputError, NemInterpreter, Session
from tests.nem.api.programs import PIPELINE

TEXT = """
buffer A : L2 (size=64)
buffer B : L1 (size=64)
buffer Y : L2 (size=64)
loop i in [0..3]:
    let X_i = region(B, i * 16, 16) elem=f16, shape=[8], layout=C
    tX = transfer.async(dst=X_i, src=region(A, i * 16, 16))
    tR = relu.async in X_i out X_i deps=[tX]
    tS = store.async(dst=region(Y, i * 16, 16), src=X_i, deps=[tR])
endloop
"""


def start(**inputs: Any) -> Session:  # noqa: ANN401
    interp = NemInterpreter()
    return interp.start(interp.load_string(TEXT), inputs=inputs)


def refusal(call: Callable[[], object]) -> str:
    """The one reason for which a call is refused."""
    with pytest.raises(InputError) as caught:
        call()
    (found,) = caught.value.diagnostics
    assert found.code == "RUN05"
    assert found.severity == "error"
    return found.message


# Inputs by name


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(64)),
        bytearray(range(64)),
        memoryview(bytes(range(64))),
        np.arange(64, dtype=np.uint8),
        np.arange(64, dtype=np.uint8).reshape(2, 4, 8),
        np.frombuffer(bytes(range(64)), np.float32),
        np.frombuffer(bytes(range(64)), np.complex128),
        np.frombuffer(bytes(range(64)), ml_dtypes.bfloat16),
        np.arange(128, dtype=np.uint8).reshape(64, 2).T[0] // 2,  # not contiguous
        memoryview(bytes(i // 2 for i in range(128)))[::2],
        np.frombuffer(bytes(range(64)), np.uint8).view(np.bool_),
    ],
    ids=lambda data: f"{type(data).__name__}-{getattr(data, 'dtype', '')}",
)
def test_the_bytes_of_any_array_fill_a_buffer(data: object) -> None:
    assert start(A=data).read_buffer("A") == bytes(range(64))


def test_a_name_with_an_offset_fills_a_part() -> None:
    session = start(**{"A": bytes(64), "A@8": bytes([1, 2]), "A@62": np.int16(-1)})
    assert session.read_buffer("A") == bytes(8) + b"\1\2" + bytes(52) + b"\xff\xff"
    session.write_buffer("A@0", [1.0])
    assert session.read_region("A[0:8]").tobytes() == np.float64(1).tobytes()


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"A": np.zeros(63, np.uint8)}, "`A` has 64 bytes, the data 63"),
        ({"A": np.zeros(65, np.uint8)}, "`A` has 64 bytes, the data 65"),
        ({"A": b""}, "`A` has 64 bytes, the data 0"),
        ({"A": 3}, "`A` has 64 bytes, the data 8"),
        ({"Q": bytes(64)}, "the program has no buffer `Q`"),
        ({"": bytes(64)}, "the program has no buffer ``"),
        ({7: bytes(64)}, "the program has no buffer `7`"),
        ({"X_i": bytes(16)}, "the program has no buffer `X_i`"),
        ({"A": np.array([object()] * 8)}, "an array of object, expected one of numbers"),
        ({"A": None}, "an array of object, expected one of numbers"),
        ({"A": "hello"}, "an array of <U5, expected one of numbers"),
        ({"A": np.array([b"ab"] * 32)}, "an array of |S2, expected one of numbers"),
        ({"A": np.zeros(8, "M8[s]")}, "an array of datetime64[s], expected one of numbers"),
        ({"A": np.zeros(8, [("a", "O")])}, "expected one of numbers"),
        ({"A": [[1], [2, 3]]}, "the data is no array: "),
        ({"A": [2**80]}, "an array of object, expected one of numbers"),
        ({"A@": bytes(4)}, "the offset in `A@` is no number"),
        ({"A@-4": bytes(4)}, "the offset in `A@-4` is no number"),
        ({"A@x": bytes(4)}, "the offset in `A@x` is no number"),
        ({"A@" + "9" * 5000: bytes(4)}, "is no number"),
        ({"A@61": bytes(4)}, "`A` has 64 bytes; 4 bytes from offset 61 do not fit"),
        ([bytes(64)], "inputs are given as a dict of arrays by buffer"),
        (np.zeros(64), "inputs are given as a dict of arrays by buffer"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: Any, says: str) -> None:  # noqa: ANN401
    interp = NemInterpreter()
    program = interp.load_string(TEXT)
    assert says in refusal(lambda: interp.run(program, inputs=inputs))


def test_every_wrong_input_is_named_and_nothing_is_written() -> None:
    interp = NemInterpreter(device="npm_lite")
    program = interp.load_string(PIPELINE)
    with pytest.raises(InputError) as caught:
        interp.run(program, inputs={"X_DDR": np.ones(4096, np.uint8), "Q": b"", "W_DDR": b"1"})
    assert [d.message for d in caught.value.diagnostics] == [
        "the program has no buffer `Q`",
        "`W_DDR` has 512 bytes, the data 1",
    ]
    assert interp.ddr_read(offset=0, size=4096) == b"\xff" * 4096


def test_nan_and_infinities_pass_through_compute() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 6e-8, -6e-8, 65504, -65504] * 4, np.float16)
    session = start(A=x)
    result = session.run()
    assert (result.status, result.diagnostics) == ("completed", ())
    y = np.frombuffer(session.read_buffer("Y"), np.float16)
    expected = np.where(np.isnan(x), x, np.maximum(x, 0))
    np.testing.assert_array_equal(y, expected)
    assert np.isnan(y[0])


# Names and ranges that are not there


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda s: s.read_buffer("Q"), "the program has no buffer `Q`"),
        (lambda s: s.read_buffer(3), "the program has no buffer `3`"),
        (lambda s: s.write_buffer("Q", b""), "the program has no buffer `Q`"),
        (lambda s: s.read_region("Q"), "no region or buffer `Q`"),
        (lambda s: s.read_region("X_j"), "did you mean `X_i`?"),
        (lambda s: s.read_region("X_4"), "no region or buffer `X_4`"),
        (lambda s: s.read_region("X_i[4]"), "`X_i[4]` is out of range: `i` goes from 0 to 3"),
        (lambda s: s.read_region("X_i[0,0]"), "`X_i[0, 0]` is out of range: `i` goes from 0 to 3"),
        (lambda s: s.read_region(""), "no region or buffer ``"),
        (lambda s: s.read_region("X_" + "9" * 5000), "no region or buffer"),
        (lambda s: s.read_region("A[0:65]"), "is no part of `A`, which has 64 bytes"),
        (lambda s: s.read_region("A[8:8]"), "is no part of `A`"),
        (lambda s: s.dump_region("Q"), "no region or buffer `Q`"),
        (lambda s: s.who_wrote("Q"), "no region or buffer `Q`"),
        (lambda s: s.run_until(token="tQ"), "no task `tQ`; there are `tX`, `tR`, `tS`"),
        (lambda s: s.run_until(token="tX[4]"), "`tX` has no iteration [4]"),
        (lambda s: s.run_until(token="tX["), "no task `tX[`"),
        (lambda s: s.read_memory("L3"), "no memory `L3`; there are DDR, L2, L1[0]"),
        (lambda s: s.read_memory("L1", engine=9), "no memory `L1[9]`"),
        (lambda s: s.read_memory("L1", engine=-1), "no memory `L1[-1]`"),
        (lambda s: s.read_memory("L2", offset=-1, size=4), "4 bytes at offset -1 do not lie in L2"),
        (lambda s: s.read_memory("L2", offset=0, size=-4), "-4 bytes at offset 0 do not lie"),
        (lambda s: s.read_memory("L2", offset=2**70), "do not lie in L2"),
        (lambda s: s.read_memory("L2", offset="0", size=4), "the offset is `0`"),
        (lambda s: s.read_memory("L2", offset=0, size=0.5), "the size is `0.5`"),
        (lambda s: s.step(n="x"), "the number of steps is `x`"),
        (lambda s: s.export_trace("trace.txt"), "a trace ends in .json or .csv"),
        (lambda s: s.export_trace("no/such/folder/trace.json"), "cannot write"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    ask: Callable[[Session], object], says: str
) -> None:
    session = start(A=bytes(64))
    assert says in refusal(lambda: ask(session))
    assert session.run().status == "completed"


# DDR


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda i: i.ddr_write(4096, b"x"), "1 bytes at offset 4096 do not lie in DDR"),
        (lambda i: i.ddr_write(-1, b"x"), "1 bytes at offset -1 do not lie in DDR"),
        (lambda i: i.ddr_write(0, bytes(4097)), "4097 bytes at offset 0 do not lie in DDR"),
        (lambda i: i.ddr_write("0", b"x"), "the offset is `0`, expected a whole number"),
        (lambda i: i.ddr_write(0.5, b"x"), "the offset is `0.5`, expected a whole number"),
        (lambda i: i.ddr_write(0, "text"), "an array of <U4, expected one of numbers"),
        (lambda i: i.ddr_write_tensor(0, [[1], [2, 3]]), "the data is no array"),
        (lambda i: i.ddr_write_tensor(0, np.array([None])), "expected one of numbers"),
        (lambda i: i.ddr_read(4097, 0), "0 bytes at offset 4097 do not lie in DDR"),
        (lambda i: i.ddr_read(0, -1), "-1 bytes at offset 0 do not lie in DDR"),
        (lambda i: i.ddr_read(-4, 4), "4 bytes at offset -4 do not lie in DDR"),
        (lambda i: i.ddr_read(0, 2**70), "do not lie in DDR, which has 4096 bytes"),
        (lambda i: i.ddr_read_tensor(0, (64, 64), np.float16), "8192 bytes at offset 0"),
        (lambda i: i.ddr_read_tensor(0, (2**40, 2**40), "f4"), "do not lie in DDR"),
        (lambda i: i.ddr_read_tensor(0, (-1, -2), "f4"), "`[-1, -2]` is no shape"),
        (lambda i: i.ddr_read_tensor(0, (1,) * 70, "u1"), "is no shape"),
        (lambda i: i.ddr_read_tensor(0, (1.5,), "u1"), "a dimension of the shape is `1.5`"),
        (lambda i: i.ddr_read_tensor(0, None, "u1"), "a dimension of the shape is `None`"),
        (lambda i: i.ddr_read_tensor(0, (2,), "zz"), "`dtype` is no type of numbers"),
        (lambda i: i.ddr_read_tensor(0, (2,), object), "`dtype` is object"),
        (lambda i: i.ddr_read_tensor(0, (2,), "U4"), "`dtype` is <U4"),
        (lambda i: i.ddr_read_tensor(0, (2,), "i8"), "`i8`, which is int8 in NEM and int64 to"),
        (lambda i: i.ddr_read_tensor(0, (2,), "u8"), "which is uint8 in NEM and uint64 to NumPy"),
        (lambda i: i.ddr_read_tensor(0, (2,), "i4"), "which is int4 in NEM and int32 to NumPy"),
        (lambda i: i.ddr_read_tensor(0, (2,), "u4"), "which is uint4 in NEM and uint32 to NumPy"),
        (lambda i: i.ddr_read_tensor(0, (2,), "f16"), "which is float16 in NEM and"),
        (lambda i: i.ddr_write_tensor(0, np.ma.zeros(4)), "the data is a masked array"),
        (lambda i: i.ddr_write(0, np.ma.masked_array([1, 2], [False, True])), "is a masked array"),
    ],
)
def test_what_does_not_lie_in_ddr_is_refused(
    call: Callable[[NemInterpreter], object], says: str
) -> None:
    assert says in refusal(lambda: call(NemInterpreter(ddr_size=4096)))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("f32", np.float32), ("i16", np.int16), ("u32", np.uint32), ("bf16", ml_dtypes.bfloat16)],
)
def test_names_that_mean_one_thing_are_types_of_tensors(name: str, dtype: Any) -> None:  # noqa: ANN401
    interp = NemInterpreter(ddr_size=4096)
    array = np.array([1, 2, 3], dtype)
    interp.ddr_write_tensor(8, array)
    found = interp.ddr_read_tensor(8, (3,), name)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("elem", ["i8", "i4"])
def test_masked_arrays_fill_no_buffer(elem: str) -> None:
    interp = NemInterpreter()
    size = 4 if elem == "i4" else 8
    text = f"""buffer A : L2 (size={size})
buffer Y : L2 (size={size})
let a = region(A, 0, {size}) elem={elem}, shape=[8], layout=C
let y = region(Y, 0, {size}) elem={elem}, shape=[8], layout=C
tS = transfer.async(dst=y, src=a)
"""
    masked = np.ma.masked_array(np.arange(8, dtype=np.int8) % 4, [True, False] * 4)
    session = interp.start(interp.load_string(text), inputs={"A": bytes(size)})
    assert "masked array" in refusal(lambda: session.write_buffer("A", masked))
    assert "masked array" in refusal(lambda: interp.run(interp.load_string(text), {"A": masked}))


def test_several_buffers_are_written_or_none() -> None:
    session = start()
    session.write_buffers({"A@0": np.full(16, 7, np.uint8), "B": bytes(64)})
    assert session.peek("A", 0, 16) == bytes([7] * 16)
    with pytest.raises(InputError) as caught:
        session.write_buffers({"A": bytes(64), "Q": b"", "B": bytes(3)})
    assert len(caught.value.diagnostics) == 2
    assert session.peek("A", 0, 16) == bytes([7] * 16)


def test_the_edges_of_ddr_belong_to_it() -> None:
    interp = NemInterpreter(ddr_size=4096)
    interp.ddr_write(offset=4095, data=b"x")
    interp.ddr_write(offset=4096, data=b"")
    assert interp.ddr_read(offset=4095, size=1) == b"x"
    assert interp.ddr_read(offset=4096, size=0) == b""
    assert interp.ddr_read_tensor(offset=0, shape=(0, 3), dtype="f4").shape == (0, 3)
    assert interp.ddr_read_tensor(offset=4095, shape=1, dtype="u1").tolist() == [ord("x")]
    interp.ddr_write_tensor(offset=8, tensor=np.arange(12, dtype=np.int16).reshape(3, 4).T)
    assert interp.ddr_read_tensor(8, (4, 3), np.int16).tolist() == [
        [0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11],
    ]  # fmt: skip


def damaged(folder: Path) -> dict[str, Path]:
    """Files that end in .npy and are none, or not of numbers."""
    np.save(folder / "good.npy", np.arange(4, dtype=np.int16))
    good = (folder / "good.npy").read_bytes()
    np.save(folder / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.savez(folder / "several.npz", a=1, b=2)
    contents = {
        "cut": good[:-3],
        "cut_in_the_header": good[:20],
        "empty": b"",
        "text": b"hello",
        "pickle": pickle.dumps([1]),
        "several": (folder / "several.npz").read_bytes(),
        "huge": good.replace(b"'shape': (4,), }", b"'shape': (9999999999999,), }"),
        "negative": good.replace(b"(4,)", b"(-4,"),
        "code": good.replace(b"'<i2'", b"a()+b"),
    }
    for name, content in contents.items():
        (folder / f"{name}.npy").write_bytes(content)
    return {name: folder / f"{name}.npy" for name in (*contents, "objects", "missing")}


def test_damaged_npy_files_and_those_with_objects_are_refused(tmp_path: Path) -> None:
    for name, path in damaged(tmp_path).items():
        interp = NemInterpreter(ddr_size=4096)
        for load in (interp.ddr_load_npy, interp.ddr_load_file):
            message = refusal(partial(load, offset=0, path=path))
            assert f"{name}.npy" in message
            assert "pickle=" not in message  # never advice to trust the file
    assert "cut short" in refusal(lambda: interp.ddr_load_npy(0, tmp_path / "cut.npy"))
    assert "several arrays" in refusal(lambda: interp.ddr_load_npy(0, tmp_path / "several.npy"))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    interp = NemInterpreter(ddr_size=16)
    (tmp_path / "large.bin").write_bytes(bytes(17))
    np.save(tmp_path / "words.npy", np.array(["abc"]))
    assert "No such file" in refusal(lambda: interp.ddr_load_file(0, tmp_path / "no.bin"))
    assert "Is a directory" in refusal(lambda: interp.ddr_load_file(0, tmp_path))
    assert "17 bytes at offset 0" in refusal(
        lambda: interp.ddr_load_file(0, tmp_path / "large.bin")
    )
    assert "array of <U3" in refusal(lambda: interp.ddr_load_npy(0, tmp_path / "words.npy"))
    assert "null byte" in refusal(lambda: interp.ddr_load_file(0, "a\0b"))


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"ddr_size": 0}, "`ddr_size` is 0, expected at least 1 byte"),
        ({"ddr_size": -1}, "`ddr_size` is -1, expected at least 1 byte"),
        ({"ddr_size": 1.5}, "`ddr_size` is `1.5`, expected a whole number"),
        ({"ddr_size": "4k"}, "`ddr_size` is `4k`, expected a whole number"),
        ({"l1_size": 0}, "`l1_size` is 0, expected at least 1 byte"),
        ({"ddr_size": True}, "`ddr_size` is `True`, expected a whole number"),
        ({"l2_size": -5}, "`l2_size` is -5, expected at least 1 byte"),
        ({"uninitialized": "random"}, "uninitialized is `random`"),
        ({"device": "npm_huge"}, "no device `npm_huge`"),
        ({"device": "no/such.cfg"}, "does not exist"),
    ],
)
def test_wrong_options_are_refused(option: dict[str, Any], says: str) -> None:
    assert says in refusal(lambda: NemInterpreter(**option))


def test_a_big_endian_array_keeps_its_values() -> None:
    interp = NemInterpreter()
    values = np.arange(32, dtype=">u2")
    interp.ddr_write_tensor(offset=0, tensor=values)
    assert interp.ddr_read_tensor(offset=0, shape=(32,), dtype="<u2").tolist() == values.tolist()


def test_what_is_about_the_caller_shows_no_empty_line() -> None:
    with pytest.raises(InputError) as refused:
        NemInterpreter(ddr_size=0)
    shown = render_text(refused.value.diagnostics).splitlines()
    assert shown[1:] == [" --> <host>"]
