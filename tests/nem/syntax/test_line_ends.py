"""Lines end in LF, in CR LF or in CR: what a text means, and where, is the same with each."""

from __future__ import annotations

import pytest

from nacre.base.fixes import include_fix, removal_fix
from nacre.base.source import Source
from nacre.nem import check, format, pack, to_mlir, unpack
from nacre.nem.bytecode.library import bytecode_source

PROGRAM = """\
# head
program p:

# above
buffer X : DDR (size=64)  # behind
buffer Y : L2 (size=32)

t = transfer.async(
    dst=region(Y, 0, 64),  # inside
    src=region(X, 0, 64)
)
wait(t)
# end
"""
ENDS = pytest.mark.parametrize("end", ["\r", "\r\n"])


def with_ends(end: str) -> str:
    return PROGRAM.replace("\n", end)


@ENDS
def test_a_comment_ends_with_its_line(end: str) -> None:
    assert [d.code for d in check(f"# head{end}const = 1{end}")] == ["DOC19"]
    places = [(d.code, d.location.line, d.location.column) for d in check(with_ends(end))]
    assert places == [(d.code, d.location.line, d.location.column) for d in check(PROGRAM)]
    assert places


@ENDS
def test_the_canonical_text_is_the_same(end: str) -> None:
    assert format(with_ends(end)) == format(PROGRAM)
    assert to_mlir(with_ends(end)).splitlines()[2:4] == to_mlir(PROGRAM).splitlines()[2:4]


@ENDS
def test_bytecode_keeps_the_places(end: str) -> None:
    source = bytecode_source(pack(with_ends(end)), "p.nemb")
    assert source.line_starts == Source("p.nem", with_ends(end)).line_starts
    assert unpack(pack(with_ends(end))) == format(PROGRAM)


def test_mixed_ends_are_counted_each_once() -> None:
    source = Source("p.nem", "a\rb\r\nc\nd\r\r\ne")
    assert [source.line_text(line + 1) for line in range(len(source.line_starts))] == [
        "a",
        "b",
        "c",
        "d",
        "",
        "e",
    ]


def test_fixes_know_the_lines() -> None:
    source = Source("p.nem", '# head\rinclude "x.nem"\rdevice d\r')
    assert include_fix(source, "y.nem").edits[0].span.start == len("# head\r")
    (edit,) = removal_fix(source.span(7, 22)).edits
    assert source.text[: edit.span.start] + source.text[edit.span.end :] == "# head\rdevice d\r"
