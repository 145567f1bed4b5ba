from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.source import Location, Source, Span, Unreadable, decode_source, read_source

BOM = b"\xef\xbb\xbf"


def refused(found: Source | Unreadable) -> Unreadable:
    assert isinstance(found, Unreadable)
    return found


def read(found: Source | Unreadable) -> Source:
    assert isinstance(found, Source)
    return found


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [
        ("", 0, 1, 1),
        ("ab", 0, 1, 1),
        ("ab", 2, 1, 3),
        ("ab\ncd", 2, 1, 3),
        ("ab\ncd", 3, 2, 1),
        ("ab\ncd", 5, 2, 3),
        ("ab\n", 3, 2, 1),
        ("\n\n\n", 2, 3, 1),
        ("ab\r\ncd", 3, 1, 4),
        ("ab\r\ncd", 4, 2, 1),
        ("a\rb", 2, 2, 1),
        ("é中𝄞x", 3, 1, 4),
        ("中\n𝄞é", 3, 2, 2),
    ],
)
def test_lines_and_columns_count_characters_from_one(
    text: str, offset: int, line: int, column: int
) -> None:
    assert Source("f", text).position(offset) == (line, column)


@given(st.text(st.sampled_from("ab\n\r\té中"), max_size=30), st.data())
def test_a_position_is_what_counting_line_ends_gives(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    line = column = 1
    for at in range(offset):
        # A carriage return ends a line by itself, or together with the newline behind it.
        ends = text[at] == "\n" or (text[at] == "\r" and text[at + 1 : at + 2] != "\n")
        line, column = (line + 1, 1) if ends else (line, column + 1)
    assert Source("f", text).position(offset) == (line, column)


@given(st.text(st.sampled_from("ab\n"), max_size=30))
def test_the_lines_put_together_are_the_text(text: str) -> None:
    source = Source("f", text)
    count = len(source.line_starts)
    assert "\n".join(source.line_text(n) for n in range(1, count + 1)) == text


def test_the_text_of_a_line_has_no_line_ending() -> None:
    source = Source("f", "one\r\ntwo\n\nfour")
    assert [source.line_text(n) for n in (1, 2, 3, 4)] == ["one", "two", "", "four"]


@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 3), (3, 3), (1, 2)])
def test_a_span_within_the_text_is_accepted(start: int, end: int) -> None:
    source = Source("f", "abc")
    assert source.span(start, end) == Span(source, start, end)


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 1), (0, 4), (4, 4)])
def test_a_span_outside_the_text_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match=rf"span \[{start}, {end}\) is outside f"):
        Source("f", "abc").span(start, end)


def test_the_end_of_a_location_is_exclusive_and_may_lie_on_another_line() -> None:
    source = Source("dir/f.nem", "ab\ncde\n")
    assert source.span(1, 5).location == Location("dir/f.nem", 1, 2, 2, 3)
    assert source.span(7, 7).location == Location("dir/f.nem", 3, 1, 3, 1)
    assert str(source.span(3, 4).location) == "dir/f.nem:2:1"


def test_two_sources_with_equal_text_are_two_sources() -> None:
    assert Source("f", "abc") != Source("f", "abc")
    assert "abc" not in repr(Source("f", "abc"))


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.nem"
    path.write_bytes("# é\r\nconst X = 1\n".encode())
    source = read(read_source(path))
    assert source.text == "# é\r\nconst X = 1\n"
    assert (source.name, source.path) == (str(path), path)
    assert read(read_source(path, name="shown")).name == "shown"


def test_a_byte_order_mark_is_dropped_once() -> None:
    source = read(decode_source(BOM + BOM + b"X", name="f"))
    assert source.text == "\ufeffX"
    assert read(decode_source(BOM + b"X", name="f")).position(0) == (1, 1)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "none", tmp_path / "file" / "below"):
        assert refused(read_source(path)) == Unreadable("does not exist", "missing")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    expected = Unreadable("is a directory, not a file", "not a file")
    assert refused(read_source(tmp_path)) == expected


def test_a_refused_file_leaves_no_handle_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        read_source(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    found: list[Source | Unreadable] = []
    # A thread that may be left behind: if the read blocked, the test would hang for ever.
    reader = threading.Thread(target=lambda: found.append(read_source(path)), daemon=True)
    reader.start()
    reader.join(timeout=10)
    assert found == [Unreadable("is a FIFO, not a file", "not a file")]


def test_devices_and_sockets_are_refused(tmp_path: Path) -> None:
    device = refused(read_source(Path(os.devnull)))
    assert device == Unreadable("is a character device, not a file", "not a file")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert isinstance(read_source(tmp_path / "s"), Unreadable)


def test_a_file_of_exactly_the_limit_is_read_and_a_larger_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.nem"
    path.write_bytes(b"x" * 1234)
    assert read(read_source(path, limit=1234)).text == "x" * 1234
    found = refused(read_source(path, limit=1233))
    assert found == Unreadable("has 1,234 bytes or more; the limit is 1,233", "too large")


def test_a_file_that_is_larger_than_it_says_is_not_read_past_the_limit() -> None:
    # The kernel gives the files of /proc the size 0.
    found = refused(read_source(Path("/proc/self/status"), limit=10))
    assert found == Unreadable("has 11 bytes or more; the limit is 10", "too large")


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (PermissionError(13, "Permission denied"), "denied", "may not be read (permission denied)"),
        (OSError(24, "Too many open files"), "missing", "cannot be read (too many open files)"),
        (OSError("odd"), "missing", "cannot be read (odd)"),
    ],
)
def test_what_the_system_refuses_is_explained(
    error: OSError, kind: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(os, "open", fail)
    found = refused(read_source(Path("any")))
    assert (found.kind, found.reason) == (kind, reason)


def test_a_path_that_no_system_accepts_is_no_crash() -> None:
    found = refused(read_source(Path("a\0b")))
    assert found == Unreadable("cannot be read (embedded null byte)", "missing")


@pytest.mark.parametrize(
    ("raw", "line", "column", "reason"),
    [
        (b"\xff", 1, 1, "byte 0xff at offset 0 is not UTF-8"),
        (b"ab\nc\xffd", 2, 2, "byte 0xff at offset 4 is not UTF-8"),
        ("é中\n𝄞x".encode() + b"\x80\n", 2, 3, "byte 0x80 at offset 11 is not UTF-8"),
        (b"a\r\nb\xc3", 2, 2, "byte 0xc3 at offset 4 is not UTF-8"),
        (BOM + b"a\xff", 1, 2, "byte 0xff at offset 4 is not UTF-8"),
        (b"ok\xed\xa0\x80", 1, 3, "byte 0xed at offset 2 is not UTF-8"),
        (b"a\nb\0c\0", 2, 2, "character 3 is NUL: this is a binary file"),
        (BOM + b"\0", 1, 1, "character 0 is NUL: this is a binary file"),
    ],
)
def test_what_is_not_text_is_refused_at_its_exact_place(
    raw: bytes, line: int, column: int, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.nem"
    path.write_bytes(raw)
    found = refused(read_source(path, name="a.nem"))
    assert (found.kind, found.reason) == ("not text", reason)
    assert found.span is not None
    assert found.span.location == Location("a.nem", line, column, line, column + 1)


@given(st.binary(max_size=40))
def test_any_bytes_are_text_or_have_a_place_where_they_are_not(raw: bytes) -> None:
    found = decode_source(raw, name="f")
    if isinstance(found, Source):
        assert found.text.encode() == raw.removeprefix(BOM)
    else:
        assert found.span is not None
        assert found.span.end == found.span.start + 1
