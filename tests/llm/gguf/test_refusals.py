"""GGUF files that are wrong: every promise broken, one at a time, with its code and its byte."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.base.diagnostics import InputError
from nacre.base.rules import RULES
from nacre.llm import read_gguf
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.gguf.limits import MAX_ARRAY_DEPTH, MAX_PAIRS, MAX_TENSORS, MAX_TEXT_BYTES
from nacre.llm.rules import gguf as gguf_rules
from tests.llm.gguf_bytes import (
    ARRAY,
    BOOL,
    TEXT,
    U8,
    U32,
    U64,
    Pair,
    Tensor,
    gguf_bytes,
    small_file,
)


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


def text(value: str) -> bytes:
    return u64(len(value)) + value.encode()


def header(tensors: int = 0, pairs: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + u32(version) + u64(tensors) + u64(pairs)


def one_pair(type_: int, value: bytes, key: str = "k") -> bytes:
    return header(0, 1) + text(key) + u32(type_) + value


def array(type_: int, count: int, values: bytes = b"") -> bytes:
    return u32(type_) + u64(count) + values


def tensor(dims: tuple[int, ...] = (4,), type_: int = 0, offset: int = 0, data: int = 16) -> bytes:
    return gguf_bytes((), [Tensor("w", dims, type_, b"\0" * data, offset)])


def two(first: int, second: int) -> bytes:
    rows = [Tensor("a", (16,), 0, b"\0" * 64, first), Tensor("b", (16,), 0, b"\0" * 64, second)]
    return gguf_bytes((), rows)


def aligned(value: int, type_: int = U32) -> bytes:
    return gguf_bytes([Pair("general.alignment", type_, value)])


# An array of 2^62 bytes in 48: other readers read on for years. The shortest has an empty key.
SHORTEST = one_pair(ARRAY, array(U8, 1 << 62), key="")
HANGS_OTHERS = one_pair(ARRAY, array(U8, 1 << 62), key="key")
NESTED = b"".join(array(ARRAY, 1) for _ in range(20_000)) + array(U8, 0)
SHALLOW = b"".join(array(ARRAY, 1) for _ in range(MAX_ARRAY_DEPTH)) + array(U8, 0)

CASES: dict[str, list[bytes]] = {
    "GGF02": [b"", b"G", b"GGML" + bytes(20), bytes(24), b"FUGG" + bytes(40)],
    "GGF03": [header(version=1), header(version=4), header(version=0), b"GGUF" + b"\0\0\0\1" * 5],
    "GGF04": [
        b"GGUF",
        b"GGUF\3\0",
        header()[:-1],
        HANGS_OTHERS,
        header(1 << 63),
        header(0, (1 << 64) - 1),
        header(1),
        header(0, 1),
        one_pair(TEXT, u64(1 << 63)),
        one_pair(TEXT, u64((1 << 64) - 1) + b"abc"),
        header(0, 1) + u64(1 << 63) + bytes(20),
        one_pair(ARRAY, array(U64, 1 << 61)),
        one_pair(ARRAY, array(TEXT, 1 << 61)),
        one_pair(ARRAY, array(TEXT, 2, text("a") + u64(9))),
        one_pair(U32, b"\1\2"),
        one_pair(BOOL, b"", key="flag"),
        header(1) + u64(200) + bytes(50),
        header(1) + text("w") + u32(4) + bytes(24),
    ],
    "GGF05": [
        header(0, MAX_PAIRS + 1) + bytes(14 * MAX_PAIRS + 14),
        header(MAX_TENSORS + 1) + bytes(33 * MAX_TENSORS + 33),
        one_pair(TEXT, u64(MAX_TEXT_BYTES + 1) + bytes(MAX_TEXT_BYTES + 1)),
    ],
    "GGF06": [
        one_pair(13, b"\0" * 8),
        one_pair((1 << 32) - 1, bytes(8)),
        one_pair(ARRAY, array(99, 0)),
        one_pair(TEXT, u64(2) + b"a\xff"),
        one_pair(BOOL, b"\2", key="flag"),
        one_pair(ARRAY, NESTED),
        one_pair(ARRAY, SHALLOW),
        header(0, 1) + u64(1) + b"\xff" + u32(U8) + b"\0" * 8,
    ],
    "GGF07": [
        one_pair(U8, b"\1", key="") + b"\0",
        gguf_bytes([Pair("k", U8, 1), Pair("k", U8, 1)]),
    ],
    "GGF08": [aligned(0), aligned(1 << 30), aligned(24), aligned(32, U64), aligned(32, U8)],
    "GGF09": [
        gguf_bytes((), [Tensor("", (4,), 0, bytes(16))]),
        gguf_bytes((), [Tensor("w", (4,), 0, bytes(16)), Tensor("w", (4,), 0, bytes(16))]),
    ],
    "GGF10": [
        tensor(()),
        tensor((1, 1, 1, 1, 4)),
        tensor((0,)),
        tensor((4, 0)),
        tensor((1 << 32, 1 << 32)),
        tensor((1 << 62, 2)),
        tensor((1 << 63, 2, 1 << 63, 2)),
        tensor((33, 2), 8, data=68),
        tensor((128, 2), 12, data=144),
        header(1) + text("w") + u32(1 << 31) + bytes(64),
    ],
    "GGF11": [
        tensor(type_=4),
        tensor(type_=36),
        tensor(type_=9),
        tensor(type_=41),
        tensor(type_=999),
    ],
    "GGF12": [
        tensor(offset=8),
        tensor(offset=64),
        tensor(offset=1 << 63),
        tensor((1 << 40,)),
        tensor(offset=(1 << 64) - 32),
        two(0, 32),
        two(64, 64),
    ],
}


def refusal(read: Callable[[], object]) -> tuple[str, str, str | None]:
    with pytest.raises(InputError) as refused:
        read()
    (finding,) = refused.value.diagnostics
    return finding.code, finding.message, finding.help


def test_every_code_is_shown() -> None:
    assert {*CASES, "GGF01"} == {code for code in vars(gguf_rules) if code.startswith("GGF")}


@pytest.mark.parametrize(
    ("code", "number"), [(code, n) for code, cases in CASES.items() for n in range(len(cases))]
)
def test_a_file_breaks_one_promise(code: str, number: int) -> None:
    data = CASES[code][number]
    found, message, _ = refusal(lambda: parse_gguf(data))
    assert found == code, message
    assert message.startswith("at byte ")
    at = int(message.split(":")[0].removeprefix("at byte ").replace(",", ""))
    assert 0 <= at <= len(data)


def test_a_file_that_hangs_other_readers_is_refused_at_once() -> None:
    assert (len(SHORTEST), len(HANGS_OTHERS)) == (48, 51)
    assert refusal(lambda: parse_gguf(SHORTEST))[0] == "GGF07"
    begun = time.process_time()
    code, message, help_text = refusal(lambda: parse_gguf(HANGS_OTHERS))
    assert time.process_time() - begun < 0.1
    assert code == "GGF04"
    assert message == (
        "at byte 43: elements of `key`: 4,611,686,018,427,387,904 need 4,611,686,018,427,387,904 "
        "bytes or more, 0 are left"
    )
    assert help_text is not None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            tensor((33, 2), 8, data=68),
            "`w` has rows of 33, expected a multiple of 32, the block of Q8_0",
        ),
        (tensor((1, 1, 1, 1, 4)), "`w` has 5 dimensions, expected 1 to 4"),
        (tensor(type_=4), "`w` is of type 4 (Q4_2), which was withdrawn"),
        (tensor(type_=999), "`w` is of type 999, which is unknown"),
        (aligned(24), "`general.alignment` is 24, expected a power of two of at most 65,536"),
        (two(0, 32), "`a` and `b` share bytes from 32 of the data"),
        (header(version=1), "the version is 1, expected 2 or 3"),
    ],
)
def test_a_refusal_says_what_was_found_and_expected(data: bytes, message: str) -> None:
    assert refusal(lambda: parse_gguf(data))[1].partition(": ")[2] == message


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path, tmp_path / "none.gguf", fifo, Path("a\0b")):
        code, message, _ = refusal(lambda path=path: read_gguf(path))  # type: ignore[misc]
        assert code == "GGF01"
        assert message.startswith("the file ")


def test_a_file_that_is_cut_anywhere_is_refused() -> None:
    data = small_file()
    last = max(row.offset + row.size_bytes for row in parse_gguf(data).tensors.values())
    for size in range(last):
        code, _, _ = refusal(lambda size=size: parse_gguf(data[:size]))  # type: ignore[misc]
        assert code in {"GGF02", "GGF04", "GGF12"}


def test_a_block_count_beyond_all_bounds_is_only_a_number() -> None:
    file = parse_gguf(gguf_bytes([Pair("llama.block_count", U32, (1 << 32) - 1)]))
    assert file.metadata["llama.block_count"] == (1 << 32) - 1


@pytest.mark.parametrize("code", sorted({*CASES, "GGF01"}))
def test_a_page_is_a_sentence_and_names_its_clause(code: str) -> None:
    rule = RULES[code]
    assert rule.spec.startswith("GGUF / ")
    assert rule.summary.endswith(".")
