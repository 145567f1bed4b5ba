"""Files from strangers: each gets a finding or a usage error, soon, and never a traceback."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nacre.base.source import MAX_SOURCE_BYTES
from nacre.nem.api import check
from tests.cli.runner import Outcome, invoke, nacre, without_privileges

pytestmark = pytest.mark.sampled(2)  # together they take long

# Most take well below a second. A hang or a square of the length takes minutes on any machine;
# a shared one that takes ten times as long as usual says nothing of the program.
CPU_SECONDS = 30.0
ADDRESS_SPACE = 4 << 30
LONG_LINE = 60_000_000

OK, ERRORS, USAGE = 0, 1, 2
Capsys = pytest.CaptureFixture[str]


def limited() -> None:
    """Called in the child: a leak is a failure here, not a slow machine."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def survived(outcome: Outcome, status: int, *words: str) -> None:
    """The promises that hold for every input."""
    assert "Traceback" not in outcome.text
    assert "internal error" not in outcome.text
    assert "\x1b" not in outcome.text
    assert outcome.status == status, outcome.text[:2000]
    for word in words:
        assert word in outcome.text, outcome.text[:2000]
    assert outcome.cpu_seconds < CPU_SECONDS


@dataclass(frozen=True)
class Content:
    """The bytes of a program, and what `nacre check` says of it."""

    name: str
    data: bytes
    status: int = ERRORS
    word: str = ""
    fmt_status: int = ERRORS  # what `nacre fmt --check` says


def nested_loops(depth: int) -> str:
    heads = "".join(f"loop i{k} in [0..0]:\n" for k in range(depth))
    return heads + "endloop\n" * depth


def in_loops(bounds: str, depth: int) -> bytes:
    heads = "".join(f"{'    ' * k}loop i{k} in {bounds}:\n" for k in range(depth))
    task = "    " * depth + "transfer.sync(dst=region(B, 0, 4), src=region(A, 0, 4))\n"
    ends = "".join(f"{'    ' * k}endloop\n" for k in reversed(range(depth)))
    buffers = "buffer A : DDR (size=4)\nbuffer B : L2 (size=4)\n"
    return (buffers + heads + task + ends).encode()


HUGE_SHAPE = (
    b"buffer A : L2 (size=4)\n"
    b"r = region(A, 0, 4) elem=f32, shape=[9223372036854775807, 9223372036854775807], layout=MN\n"
)

CONTENTS = [
    Content("binary garbage", bytes(range(256)) * 50, word="error[LEX10]"),
    Content("NUL bytes", b"const X = 1\0\n", word="error[LEX10]"),
    Content("invalid UTF-8", b"const X = 1  # \xff\xfe\n", word="byte 0xff at offset 15"),
    Content("a cut UTF-8 sequence", b"const X = 1  # \xe5\xad", word="error[LEX10]"),
    Content("UTF-16", "const X = 1\n".encode("utf-16"), word="error[LEX10]"),
    Content("a byte order mark", b"\xef\xbb\xbfconst X = 1\n", OK, "no problems", OK),
    Content("nothing", b"", OK, "no problems", OK),
    Content("blanks", b" \t\r\n" * 1000, OK, "no problems"),
    Content("comments alone", b"# one\n# two\n" * 1000, OK, "no problems", OK),
    Content("a comment without an end", b"# one", OK, "no problems"),
    Content("carriage returns", b"const X = 1\rconst Y = 2\r", OK, "no problems"),
    Content("10,000 parentheses", b"const X = " + b"(" * 10_000 + b"1", word="error[DOC20]"),
    Content("10,000 brackets", b"let X = " + b"[" * 10_000, word="error[DOC20]"),
    Content("10,000 minus signs", b"const X = " + b"-" * 10_000 + b"1", word="error[DOC20]"),
    Content("10,000 braces", b"device d " + b"{" * 10_000, word="error[DOC19]"),
    Content("10,000 loops", nested_loops(10_000).encode(), word="error[DOC20]"),
    Content("10,000 loops without end", b"loop i in [0..0]:\n" * 10_000, word="error[DOC20]"),
    Content("10,000 ends without loop", b"endloop\n" * 10_000, word="1000 errors"),
    Content("100,000 terms", b"const X = 1" + b" + 1" * 99_999, word="error[DOC20]"),
    Content("10,000 digits", b"const X = " + b"9" * 10_000, word="error[CST16]"),
    Content(
        "10,000 digits of a size", b"buffer B : L2 (size=" + b"9" * 10_000 + b")", ERRORS, "1 error"
    ),
    Content("10,000 digits of a float", b"let X = " + b"9" * 10_000 + b".5\n", OK, fmt_status=OK),
    Content("a float beyond all bounds", b"let X = 1.0e" + b"9" * 5_000, OK),
    Content(
        "products beyond all bounds",
        b"const A = 9223372036854775807\nconst B = A * A\n",
        ERRORS,
        "error[CST16]",
        OK,
    ),
    Content("an endless loop", in_loops("[0..9223372036854775807]", 1), ERRORS, "1 error", OK),
    Content("64 loops of ten", in_loops("[0..9]", 64), ERRORS, "1 error"),
    Content("a loop that multiplies to its limit", in_loops("[0..4999999]", 1), OK, fmt_status=OK),
    Content("a shape beyond all bounds", HUGE_SHAPE, ERRORS, "error[EXT02]", OK),
    Content("a long name", b"const " + b"a" * 1_000_000 + b" = 1\n", OK, fmt_status=OK),
    Content("an endless string", b'let X = "' + b"\\" * 1_000_001, word="error[LEX02]"),
    Content("100,000 decorators", b"buffer B : L2 (size=4) " + b"@debug(x) " * 100_000, OK),
    Content("100,000 errors", b"buffer\n" * 100_000, word="1000 errors"),
    Content(
        "30,000 unknown names",
        b"".join(b"let a%d = b%d\n" % (i, i) for i in range(30_000)),
        ERRORS,
        "1000 errors",
        OK,
    ),
]


@pytest.mark.heavy("large files, in processes with limits of their own")
@pytest.mark.sampled(16)
@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.name)
def test_any_content_is_checked_soon(tmp_path: Path, content: Content) -> None:
    path = tmp_path / "f.nem"
    path.write_bytes(content.data)
    survived(nacre("check", path, before=limited), content.status, content.word)


@pytest.mark.heavy("processes of their own")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.name)
def test_any_content_is_formatted_soon_or_left_alone(
    capsys: Capsys, tmp_path: Path, content: Content
) -> None:
    path = tmp_path / "f.nem"
    path.write_bytes(content.data)
    survived(invoke(capsys, "fmt", "--check", path), content.fmt_status)
    assert path.read_bytes() == content.data


@pytest.mark.sampled(6)
@pytest.mark.parametrize("content", CONTENTS[:6], ids=lambda content: content.name)
def test_any_content_may_come_by_standard_input(content: Content) -> None:
    survived(nacre("check", "-", stdin=content.data), content.status, content.word)


# Large files


def test_lex09_a_file_above_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "big.nem"
    with path.open("wb") as file:
        file.truncate(MAX_SOURCE_BYTES + 1)
    outcome = nacre("check", path, before=limited)
    survived(outcome, ERRORS, "error[LEX09]", "67,108,865 bytes", "the limit is 67,108,864")
    assert outcome.cpu_seconds < 2.0


def test_lex09_standard_input_without_end_is_not_read_for_ever() -> None:
    with Path("/dev/zero").open("rb") as zero:
        endless = zero.read(MAX_SOURCE_BYTES + 1)
    survived(nacre("check", "-", stdin=endless, before=limited), ERRORS, "error[LEX09]")


@pytest.mark.full
@pytest.mark.parametrize(
    ("head", "unit", "status", "word"),
    [
        (b"#", b"a", OK, "no problems"),
        (b"", b" ", OK, "no problems"),
        (b'let s = "', b"a", ERRORS, "error[LEX02]"),
        (b"const X = ", b"1", ERRORS, "error[CST16]"),
        (b"", b"$", ERRORS, "error[LEX01]"),
        (b"", "\u5b57".encode(), ERRORS, "error[LEX01]"),
    ],
    ids=["comment", "blanks", "string", "digits", "signs", "letters"],
)
def test_a_single_line_of_60_megabytes_is_read(
    tmp_path: Path, head: bytes, unit: bytes, status: int, word: str
) -> None:
    path = tmp_path / "line.nem"
    path.write_bytes(head + unit * (LONG_LINE // len(unit)))
    survived(nacre("check", path, before=limited), status, word)


@pytest.mark.full
def test_a_single_line_of_many_tokens_takes_time_in_proportion(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        path = tmp_path / "line.nem"
        path.write_bytes(b"let x = [" + b"1, " * count + b"1]")
        outcome = nacre("check", path, before=limited)
        survived(outcome, OK, "no problems")
        return outcome.cpu_seconds

    few = seconds(50_000)
    assert seconds(400_000) < 3 * 8 * few  # the square would be 64 times as long


# Arguments that are no files


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_dangling(path: Path) -> None:
    path.symlink_to("nothing")


SPECIAL: dict[str, tuple[Callable[[Path], None], str]] = {
    "fifo": (make_fifo, "is a FIFO, not a file"),
    "folder": (make_folder, "is a directory, not a file"),
    "loop": (make_loop, "cannot be read"),
    "dangling": (make_dangling, "does not exist"),
}
VERBS = [["check"], ["fmt"], ["check", "--format", "json"]]


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_special_file_is_refused(
    capsys: Capsys, tmp_path: Path, kind: str, verb: list[str]
) -> None:
    make, reason = SPECIAL[kind]
    path = tmp_path / "f.nem"
    make(path)
    survived(invoke(capsys, *verb, path), USAGE, f"{path} {reason}")


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_special_file_is_no_device(capsys: Capsys, tmp_path: Path, kind: str) -> None:
    make, reason = SPECIAL[kind]
    path, program = tmp_path / "d.nem", tmp_path / "f.nem"
    make(path)
    program.write_text("program p:\n", encoding="utf-8")
    survived(invoke(capsys, "check", "--device", path, program), USAGE, reason)


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_special_file_cannot_be_included(capsys: Capsys, tmp_path: Path, kind: str) -> None:
    make, reason = SPECIAL[kind]
    make(tmp_path / "d.nem")
    program = tmp_path / "f.nem"
    program.write_text('include "d.nem"\nprogram p:\n', encoding="utf-8")
    said = reason if kind != "loop" else "does not exist"
    outcome = invoke(capsys, "check", program)
    survived(outcome, ERRORS, "error[INC02]", said, "checked 1 file: 1 error")


@pytest.mark.parametrize("verb", [["check"], ["fmt"], ["check", "--device"]], ids=" ".join)
def test_a_file_that_may_not_be_read_is_wrong_usage(tmp_path: Path, verb: list[str]) -> None:
    path, other = tmp_path / "f.nem", tmp_path / "g.nem"
    path.touch(0)
    other.touch()
    others = [other] if len(verb) > 1 else []
    outcome = nacre(*verb, path, *others, before=without_privileges)
    survived(outcome, USAGE, "may not be read (permission denied)")


def test_a_file_that_may_not_be_read_cannot_be_included(tmp_path: Path) -> None:
    (tmp_path / "d.nem").touch(0)
    (tmp_path / "folder").mkdir(0)
    path = program(tmp_path, "d.nem", "folder/e.nem")
    outcome = nacre("check", path, before=without_privileges)
    survived(outcome, ERRORS, "`d.nem` may not be read", "`folder/e.nem` may not be read")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_device_of_the_system_is_refused(capsys: Capsys, verb: list[str], device: str) -> None:
    survived(invoke(capsys, *verb, device), USAGE, device)


def test_a_missing_file_is_wrong_usage(capsys: Capsys, tmp_path: Path) -> None:
    missing = tmp_path / "missing.nem"
    survived(invoke(capsys, "check", missing), USAGE, "missing.nem does not exist")
    (tmp_path / "f.nem").touch()
    below_a_file = tmp_path / "f.nem" / "g.nem"
    survived(invoke(capsys, "check", below_a_file), USAGE, "does not exist")
    too_long = invoke(capsys, "check", "a" * 10_000)
    survived(too_long, USAGE, "cannot be read (file name too long)")


def test_lex10_the_place_of_the_first_bad_byte_is_given(tmp_path: Path) -> None:
    path = tmp_path / "f.nem"
    path.write_bytes("const A = 1\n# \u00e9".encode() + b"\xff\n")
    (found,) = check(path)
    assert (found.code, found.location.line, found.location.column) == ("LEX10", 2, 4)


def test_lex11_from_python_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    make_fifo(tmp_path / "fifo.nem")
    for path, reason in (
        (tmp_path / "missing.nem", "does not exist"),
        (tmp_path, "is a directory, not a file"),
        (tmp_path / "fifo.nem", "is a FIFO, not a file"),
    ):
        (found,) = check(path)
        assert (found.code, found.severity) == ("LEX11", "error")
        assert found.message == f"`{path}` {reason}"


# Includes


def program(folder: Path, *includes: str) -> Path:
    path = folder / "main.nem"
    lines = "".join(f'include "{include}"\n' for include in includes)
    path.write_text(lines + "program p:\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("include", "code"),
    [
        (".", "INC02"),
        ("", "INC02"),
        ("main.nem", "INC01"),
        ("./../PARENT/main.nem", "INC01"),
        ("/etc/passwd", "INC08"),
        ("/dev/zero", "INC08"),
        ("../../../../../../../../../etc/passwd", "INC08"),
        ("../../x", "INC02"),
        ("x" * 5000, "INC02"),
        ("a/" * 3000 + "b.nem", "INC02"),
        ("main.nem/below.nem", "INC02"),
        ("file:///etc/passwd", "INC02"),
        ("\x1b[31m.nem", "INC02"),
        ("nacre:npm_lite.nem", "INC02"),
        ("devices/npm_lite.nem", "INC02"),
    ],
    ids=range(15),
)
def test_an_include_that_leads_astray_is_one_finding(
    capsys: Capsys, tmp_path: Path, include: str, code: str
) -> None:
    path = program(tmp_path, include.replace("PARENT", tmp_path.name))
    outcome = invoke(capsys, "check", path)
    survived(outcome, ERRORS, f"error[{code}]", "checked 1 file: 1 error")


def test_an_include_through_a_link_does_not_leave_the_root(capsys: Capsys, tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    root.mkdir(parents=True)
    (tmp_path / "secret.nem").write_text("# secret\n", encoding="utf-8")
    (root / "link.nem").symlink_to(tmp_path / "secret.nem")
    (root / "folder").symlink_to("/etc")
    outcome = invoke(capsys, "check", program(root, "link.nem", "folder/passwd"))
    survived(outcome, ERRORS, "error[INC08]", "checked 1 file: 2 errors")


@pytest.mark.heavy("processes of their own")
def test_a_chain_of_1100_includes_ends_with_a_finding(tmp_path: Path) -> None:
    for i in range(1100):
        (tmp_path / f"f{i}.nem").write_text(f'include "f{i + 1}.nem"\n', encoding="utf-8")
    survived(nacre("check", program(tmp_path, "f0.nem")), ERRORS, "error[INC09]")


@pytest.mark.full
def test_a_tree_of_includes_that_share_everything_is_linear(tmp_path: Path) -> None:
    count = 120
    for i in range(count):
        below = "".join(f'include "f{j}.nem"\n' for j in range(i + 1, count))
        (tmp_path / f"f{i}.nem").write_text(below, encoding="utf-8")
    survived(nacre("check", program(tmp_path, "f0.nem")), OK, "no problems")


def test_a_circle_of_includes_is_found_wherever_it_is_entered(tmp_path: Path) -> None:
    count = 50
    for i in range(count):
        text = "".join(f'include "f{(i + step) % count}.nem"\n' for step in (1, 2, 3))
        (tmp_path / f"f{i}.nem").write_text(text, encoding="utf-8")
    survived(nacre("check", program(tmp_path, "f0.nem")), ERRORS, "error[INC01]")


# Names that would drive a terminal or break a format

NAMES = [
    b"a\nb.nem",
    b"\x1b[31mred\x1b[0m.nem",
    b"a\tb\r.nem",
    b"\xff\xfe.nem",
    "\u5b57.nem".encode(),
]


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_strange_file_name_cannot_drive_the_terminal(
    capsys: Capsys, tmp_path: Path, name: bytes, output: str
) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(b"const X = 1 / 0\n")
    survived(invoke(capsys, "check", "--format", output, path), ERRORS, "CST06")


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
@pytest.mark.parametrize(
    "verb", [["check"], ["fmt"], ["devices"], ["check", "--device"], ["check", "--allow"]]
)
def test_a_strange_name_of_a_missing_file_cannot_drive_the_terminal(
    capsys: Capsys, tmp_path: Path, name: bytes, verb: list[str]
) -> None:
    known = tmp_path / "x.nem"
    known.touch()
    others = [known] if len(verb) > 1 else []
    outcome = invoke(capsys, *verb, os.fsdecode(name), *others)
    survived(outcome, USAGE)
    assert outcome.err.count("\n") <= 4


def test_names_that_are_no_text_come_through_the_command_line(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe.nem"
    with open(path, "wb") as file:
        file.write(b"const X = 1 / 0\n")
    survived(nacre("check", path, path + b"\n"), USAGE, "error[CST06]", "does not exist")


@pytest.mark.heavy("two processes")
def test_a_message_cannot_drive_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "f.nem"
    path.write_bytes(b'include "\x1b[2J.nem"\nlet \x1b[31m = 1\nlet s = "\x07\x9b')
    survived(nacre("check", path), ERRORS, "error[LEX10]")
    path.write_bytes('include "\x1b[2J.nem"\nlet \x1b[31m = 1\nlet s = "\x07\x9b'.encode())
    outcome = nacre("check", path)
    survived(outcome, ERRORS, "error[INC02]", "error[LEX01]", "error[LEX02]")
    assert not {"\x07", "\x9b"} & set(outcome.text)
