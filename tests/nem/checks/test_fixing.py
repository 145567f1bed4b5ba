"""`check --fix`: every rule with a sure remedy mends its mistake, and nothing gets worse."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import RULES
from nacre.base.source import Source, read_source
from nacre.nem.checks import catalogue
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.checks.fixing import FixResult, fix_source
from tests.conformance.expectations import Case, all_cases

catalogue.load()

FILL = """\
buffer S : L2 (size=256)
buffer M : L1 (size=256)
fill = transfer.sync(dst=region(M, 0, 256), src=region(S, 0, 256))
let tile = region(M, 0, 64) elem=i8, shape=[64], layout=C
"""
KEEP = "keep = store.sync(dst=region(S, 0, 256), src=region(M, 0, 256))\n"
DEVICE = 'include "npm_lite.nem"\ndevice d extends npm_lite {\n    %s\n}\n'
TOPOLOGY = (
    "topology { num_engines = 1 l2_size_bytes = 1048576 device_units { %s } "
    "per_engine { NMU = 1 l1_size_bytes = 524288 } }"
)
FAMILY = """\
type_family relu<T: {f16}> {
    %s: T
    output: T
    variants:
        default: {} conformance: { MAY <f16> }
}
"""


def task(line: str) -> str:
    return f"{FILL}{line}\n{KEEP}"


def device(entry: str) -> str:
    return DEVICE % entry if entry else 'include "npm_lite.nem"\ndevice d extends npm_lite {\n}\n'


# Code, what is wrong, what becomes of it.
CASES = [
    ("CST14", "const N : i32 = 4\n", "const N = 4\n"),
    ("CST15", "const tiles = 4\nconst M = tlies * 2\n", "const tiles = 4\nconst M = tiles * 2\n"),
    ("NAM01", task("r = relu.sync in tiel out tile"), task("r = relu.sync in tile out tile")),
    (
        "NAM01",
        FILL.replace("region(M, 0, 64)", "region(m2, 0, 64)")
        .replace("buffer M", "buffer M2")
        .replace("dst=region(M,", "dst=region(M2,")
        + KEEP.replace("region(M,", "region(M2,"),
        FILL.replace("region(M, 0, 64)", "region(M2, 0, 64)")
        .replace("buffer M", "buffer M2")
        .replace("dst=region(M,", "dst=region(M2,")
        + KEEP.replace("region(M,", "region(M2,"),
    ),
    (
        "NAM06",
        task("loop i in [0..1]:\n    tR = relu.async in tile out tile\nendloop\nwait(tR)"),
        task("loop i in [0..1]:\n    tR = relu.async in tile out tile\nendloop"),
    ),
    (
        "NAM06",
        task(
            "loop i in [0..1]:\n    tR = relu.async in tile out tile\nendloop\n"
            "u = relu.sync in tile out tile deps=[tR]"
        ),
        task(
            "loop i in [0..1]:\n    tR = relu.async in tile out tile\nendloop\n"
            "u = relu.sync in tile out tile"
        ),
    ),
    (
        "DEC01",
        "loop i in [0..3] @max_inflight(2):\nendloop\n",
        "loop i in [0..3] @max_in_flight(2):\nendloop\n",
    ),
    *(
        (
            code,
            task(f"r = relu.sync in tile out tile @resource({unit}[0])"),
            task("r = relu.sync in tile out tile"),
        )
        for code, unit in (("DEC04", "SEQ"), ("DEC05", "sDMA"), ("DEC06", "WDM"))
    ),
    (
        "DEC17",
        "loop i in [0..3] @max_in_flight(2) @max_in_flight(2):\nendloop\n",
        "loop i in [0..3] @max_in_flight(2):\nendloop\n",
    ),
    ("DEV04", device("opcode.extended { cast.default }"), device("opcode.extended { }")),
    (
        "DEV14",
        device("opcode.extended { eltwsie<f32>.default }"),
        device("opcode.extended { eltwise<f32>.default }"),
    ),
    (
        "DEV14",
        device("opcode.extended { eltwise<f32>.defalt }"),
        device("opcode.extended { eltwise<f32>.default }"),
    ),
    ("DEV16", device(TOPOLOGY % "sdma = 1"), device(TOPOLOGY % "sDMA = 1")),
    ("DEV17", device(TOPOLOGY % "sDMA = 1 sDMA = 1"), device(TOPOLOGY % "sDMA = 1")),
    (
        "DOC01",
        'const X = 1\ninclude "npm_lite.nem"\n',
        'include "npm_lite.nem"\nconst X = 1\n',
    ),
    ("DOC05", "program p\nconst X = 1\n", "program p:\nconst X = 1\n"),
    (
        "DOC08",
        FILL.replace("elem=i8, shape=[64], layout=C", "shape=[64], layout=C, elem=i8") + KEEP,
        FILL + KEEP,
    ),
    ("DOC08", FILL.replace("shape", "shpae") + KEEP, FILL + KEEP),
    ("DOC08", FILL.replace("elem=i8,", "elem=i8, elem=i8,") + KEEP, FILL + KEEP),
    ("DOC11", task("r = relu.snyc in tile out tile"), task("r = relu.sync in tile out tile")),
    ("DOC12", task("r = rleu.sync in tile out tile"), task("r = relu.sync in tile out tile")),
    ("DOC12", FILL.replace("transfer", "tranfser") + KEEP, FILL + KEEP),
    ("DOC13", "buffer A : l2 (size=64)\n", "buffer A : L2 (size=64)\n"),
    ("DOC14", "buffer A : L2 (sise=64)\n", "buffer A : L2 (size=64)\n"),
    ("DOC15", "buffer A : L2 (size=64, size=64)\n", "buffer A : L2 (size=64)\n"),
    ("DOC16", FILL.replace("i8", "int8") + KEEP, FILL + KEEP),
    ("DOC16", FILL.replace("i8", "I8") + KEEP, FILL + KEEP),
    (
        "DOC17",
        task("r = leaky_relu.sync in tile out tile alpha=0.5 alpha=0.5"),
        task("r = leaky_relu.sync in tile out tile alpha=0.5"),
    ),
    (
        "DOC17",
        FILL.replace("(dst=region(M, 0, 256)", "(dst=region(M, 0, 256), dst=region(M, 0, 256)")
        + KEEP,
        FILL + KEEP,
    ),
    ("DOC18", FILL.replace("dst=", "dts=") + KEEP, FILL + KEEP),
    ("DOC19", "bufer A : L2 (size=64)\n", "buffer A : L2 (size=64)\n"),
    ("DOC19", "buffer A : L2 (size=64,)\n", "buffer A : L2 (size=64)\n"),
    ("DOC19", "buffer A : L2 (size=64.0,)\n", "buffer A : L2 (size=64)\n"),
    ("DOC19", "const N 4\n", "const N = 4\n"),
    ("DOC19", "loop i in [0..3]\nendloop\n", "loop i in [0..3]:\nendloop\n"),
    ("DOC19", "buffer A : L2 size=64)\n", "buffer A : L2 (size=64)\n"),
    ("DOC19", FILL.replace("shape=[64],", "shape=[64,],") + KEEP, FILL + KEEP),
    (
        "DOC19",
        task("r = clamp.sync in tile out tile min_val=0, max_val=6"),
        task("r = clamp.sync in tile out tile min_val=0  max_val=6"),
    ),
    (
        "DOC19",
        device((TOPOLOGY % "sDMA = 1").replace("topology", "topolgy")),
        device(TOPOLOGY % "sDMA = 1"),
    ),
    ("DOC21", task("r = relu.sync IN tile OUT tile"), task("r = relu.sync in tile out tile")),
    (
        "DOC22",
        FILL.replace("64) elem=i8, shape=[64], layout=C", "64, elem=i8, shape=[64], layout=C)")
        + KEEP,
        FILL + KEEP,
    ),
    (
        "DOC23",
        FILL.replace(
            "dst=region(M, 0, 256), src=region(S, 0, 256)",
            "src=region(S, 0, 256), dst=region(M, 0, 256)",
        )
        + KEEP,
        FILL + KEEP,
    ),
    (
        "DVD01",
        "# a plan\ndevice npm_lite\nbuffer A : L2 (size=64)\n",
        '# a plan\ninclude "npm_lite.nem"\ndevice npm_lite\nbuffer A : L2 (size=64)\n',
    ),
    (
        "DVD01",
        'include "npm_lite.nem"\ndevice npm_liet\nbuffer A : L2 (size=64)\n',
        'include "npm_lite.nem"\ndevice npm_lite\nbuffer A : L2 (size=64)\n',
    ),
    (
        "INH07",
        "device d extends npm_lite {\n}\n",
        'include "npm_lite.nem"\ndevice d extends npm_lite {\n}\n',
    ),
    (
        "INC02",
        'include "npm_liet.nem"\nconst X = 1\n',
        'include "npm_lite.nem"\nconst X = 1\n',
    ),
    ("INH01", device('spec_version = "NEM-1.0"'), device("")),
    (
        "LEX03",
        task("r = leaky_relu.sync in tile out tile alpha=.5"),
        task("r = leaky_relu.sync in tile out tile alpha=0.5"),
    ),
    ("LEX03", "buffer A : L2 (size=0x40)\n", "buffer A : L2 (size=64)\n"),
    ("LEX04", "buffer A : L2 (size=64.0)\n", "buffer A : L2 (size=64)\n"),
    ("LEX05", FILL.replace("0, 64)", "0.0, 64)") + KEEP, FILL + KEEP),
    ("LEX06", FILL.replace("[64]", "[64.00]") + KEEP, FILL + KEEP),
    ("LEX07", "loop i in [0..3.0]:\nendloop\n", "loop i in [0..3]:\nendloop\n"),
    ("LEX08", "const N = 4.0\n", "const N = 4\n"),
    (
        "PLC08",
        'include "npm_mid.nem"\ndevice npm_mid\nbuffer A : L1 (size=64)\n',
        'include "npm_mid.nem"\ndevice npm_mid\nbuffer A : L1[0] (size=64)\n',
    ),
    (
        "QNT17",
        FILL.replace(
            "elem=i8, shape=[64], layout=C",
            "elem=f16, shape=[32], layout=C, quant=per_tensor(scale=0.5, zero_point=0)",
        )
        + "r = relu.sync in tile out tile\n"
        + KEEP,
        FILL.replace("elem=i8, shape=[64]", "elem=f16, shape=[32]")
        + "r = relu.sync in tile out tile\n"
        + KEEP,
    ),
    (
        "SIG04",
        task("r = leaky_relu.sync in tile out tile alhpa=0.5"),
        task("r = leaky_relu.sync in tile out tile alpha=0.5"),
    ),
    (
        "SIG05",
        FILL.replace("64) elem=i8, shape=[64]", "64) elem=f32, shape=[16]")
        + "let half = region(M, 64, 32) elem=f16, shape=[16], layout=C\n"
        + "r = cast.sync in tile out half rounding=flor\n"
        + KEEP,
        FILL.replace("64) elem=i8, shape=[64]", "64) elem=f32, shape=[16]")
        + "let half = region(M, 64, 32) elem=f16, shape=[16], layout=C\n"
        + "r = cast.sync in tile out half rounding=floor\n"
        + KEEP,
    ),
    ("SIG20", task("w = wait(fill)"), task("wait(fill)")),
    ("SIG20", task("w = wait.async(fill)"), task("wait(fill)")),
    (
        "TYP04",
        FILL.replace("elem=i8, shape=[64], layout=C", "elem=f16, shape=[4, 8], layout=MK")
        + "let B = region(M, 64, 64) elem=f16, shape=[8, 4], layout=KN\n"
        + "let Y = region(M, 128, 32) elem=f16, shape=[4, 4], layout=MN\n"
        + "r = gemm.sync in tile, B out Y accum_type=f16\n"
        + KEEP,
        FILL.replace("elem=i8, shape=[64], layout=C", "elem=f16, shape=[4, 8], layout=MK")
        + "let B = region(M, 64, 64) elem=f16, shape=[8, 4], layout=KN\n"
        + "let Y = region(M, 128, 32) elem=f16, shape=[4, 4], layout=MN\n"
        + "r = gemm.sync in tile, B out Y accum_type=f32\n"
        + KEEP,
    ),
    ("TYP21", FAMILY % "inptu", FAMILY % "input"),
]
STRICT = CheckOptions(strict=True)


def fixed(text: str, options: CheckOptions = STRICT) -> FixResult:
    return fix_source(Source("case.nem", text), options)


def said(found: Diagnostic) -> tuple[str, str]:
    return found.code, found.message


@pytest.mark.parametrize(("code", "bad", "good"), CASES)
def test_a_sure_remedy_leaves_a_clean_file(code: str, bad: str, good: str) -> None:
    result = fixed(bad)
    assert code in {d.code for d in result.applied}, result.checked.diagnostics
    assert result.source.text == good
    assert [str(d) for d in result.checked.diagnostics if d.severity != "info"] == []
    assert fixed(result.source.text).applied == ()


def test_every_rule_that_says_it_is_fixable_is_shown_here() -> None:
    shown = {code for code, _, _ in CASES} | {"INC01"}
    assert {code for code, rule in RULES.items() if rule.fix} == shown


def test_inc01_a_file_does_not_include_itself_any_more(tmp_path: Path) -> None:
    path = tmp_path / "main.nem"
    path.write_text('include "main.nem"\nconst X = 1\n', encoding="utf-8")
    source = read_source(path)
    assert isinstance(source, Source)
    result = fix_source(source, STRICT)
    assert result.source.text == "const X = 1\n"
    assert result.checked.diagnostics == ()


# What a careful reader would not dare to change.
@pytest.mark.parametrize(
    "text",
    [
        "const tile_1 = 4\nconst N = tile_2\n",
        "const xbuf = 4\nconst N = ybuf\n",
        "const N = 4\nconst M = K\n",
        "const tile = 4\nconst time = 5\nconst N = tive\n",
        "buffer A : L2 (size=64, size=128)\n",
        "buffer A : L2 (size=64, align=48)\n",
        "buffer A : L2 (size=64.5)\n",
        "loop i in [0..3] @max_in_flight(2) @max_in_flight(3):\nendloop\n",
        "wait()\n",
        device("opcode.extended { eltwise<f32>.default }")
        + "device e extends d {\n    opcode.mandatory { eltwise<f32>.default }\n}\n",
        task("r = relu in tile out tile"),
        task("r = leaky_relu.sync in tile out tile alpha=0.5 alpha=0.25"),
    ],
)
def test_what_is_not_sure_is_left_alone(text: str) -> None:
    result = fixed(text)
    assert result.applied == ()
    assert result.source.text == text
    assert result.checked.diagnostics


def test_a_fix_that_brings_something_up_is_refused_and_says_what() -> None:
    refused = fixed(task("w = wait(fill)\nwait(w)")).refused
    assert [(r.diagnostic.code, r.because.code) for r in refused if r.because] == [
        ("SIG20", "NAM01")
    ]


def test_fixes_that_only_go_together_are_applied_together() -> None:
    text = "buffer A : L2 (size=64.0,)\n"  # the float shows once the comma is gone
    assert [d.code for d in fixed(text).applied] == ["DOC19", "LEX04"]


def test_line_endings_comments_and_what_stands_around_stay() -> None:
    text = "# caf\u00e9\r\nconst N : i32 = 4  # four\r\n\r\nbuffer A : l2 (size=N)"
    good = "# caf\u00e9\r\nconst N = 4  # four\r\n\r\nbuffer A : L2 (size=N)"
    assert fixed(text).source.text == good


def test_a_file_that_is_included_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "dev.nem").write_text(device('spec_version = "NEM-1.0"'), encoding="utf-8")
    main = tmp_path / "main.nem"
    main.write_text('include "dev.nem"\nconst N : i32 = 4\n', encoding="utf-8")
    source = read_source(main)
    assert isinstance(source, Source)
    result = fix_source(source, STRICT)
    assert [d.code for d in result.applied] == ["CST14"]
    assert {d.code for d in result.checked.diagnostics} == {"INC03", "INH01"}


def test_findings_that_are_not_asked_for_are_not_fixed() -> None:
    text = "const N : i32 = 4\nbuffer A : l2 (size=64)\n"
    result = fix_source(Source("x", text), STRICT, lambda d: d.code != "CST14")
    assert [d.code for d in result.applied] == ["DOC13"]


def assert_better(source: Source, options: CheckOptions) -> FixResult:
    before = Counter(map(said, check_source(source, options).diagnostics))
    result = fix_source(source, options)
    after = Counter(map(said, result.checked.diagnostics))
    assert not after - before
    assert bool(result.applied) == (result.source.text != source.text)
    if result.applied:
        assert after.total() < before.total()
    again = fix_source(result.source, options)
    assert (again.applied, again.source.text) == ((), result.source.text)
    return result


@pytest.mark.full
@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_fixing_a_conformance_case_brings_up_nothing(case: Case) -> None:
    source = read_source(case.root)
    assert isinstance(source, Source)
    assert_better(source, case.options())


ROOT = Path(__file__).parents[3]
PROGRAMS = sorted([*(ROOT / "examples").glob("*.nem"), *(ROOT / "examples/devices").glob("*.nem")])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_clean_file_never_changes(path: Path) -> None:
    source = read_source(path)
    assert isinstance(source, Source)
    result = fix_source(source, STRICT)
    assert (result.applied, result.source) == ((), source)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(12))
def test_fixing_a_damaged_program_never_makes_it_worse(seed: int) -> None:
    draw = random.Random(seed)
    _, bad, good = draw.choice(CASES)
    text = draw.choice([bad, good, FILL + KEEP, PROGRAMS[0].read_text(encoding="utf-8")])
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(text))
        cut = draw.choice([0, 0, 1, 1, 2])
        text = (
            text[:at] + draw.choice(["", *"xX0.,:()[]=@ \n", text[at : at + 1]]) + text[at + cut :]
        )
    assert_better(Source("damaged.nem", text), STRICT)
