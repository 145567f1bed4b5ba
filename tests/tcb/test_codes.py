"""Every code of the format: a case that breaks that promise and no other, and a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.rules import RULES
from nacre.base.source import Source
from nacre.base.terms import operation
from nacre.tcb import catalogue
from nacre.tcb.binary.encoding import decode, encode
from nacre.tcb.files import load_image, read_image, save_image
from nacre.tcb.image import Image, Repeat, counter
from nacre.tcb.judge import judge
from nacre.tcb.text.assembly import assemble
from tests.effort import scaled
from tests.tcb.broken import COPY, FILES, IMAGES, TEXTS, X, changed, with_items
from tests.tcb.samples import TEXT, sample
from tests.tcb.strategies import images

catalogue.load()
# What a machine and a verifier find have codes of their own, further on.
CODES = {code for code, rule in RULES.items() if rule.language == "TCB" and "TCB" <= code < "TCB50"}
ELSEWHERE = {"TCB08"}


def test_every_code_is_shown() -> None:
    assert {*IMAGES, *FILES, *TEXTS, *ELSEWHERE} == CODES


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_page_is_a_sentence_and_names_its_clause(code: str) -> None:
    rule = RULES[code]
    assert rule.spec.startswith("TCB / ")
    assert rule.summary.endswith(".")
    assert rule.summary[0].isupper()


def found(read: Callable[[], object]) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as refused:
        read()
    return refused.value.diagnostics


@pytest.mark.parametrize("code", sorted(IMAGES))
def test_an_image_breaks_one_promise(code: str) -> None:
    for at, build in enumerate(IMAGES[code]):
        findings = judge(build())
        assert {d.code for d in findings} == {code}, (at, [str(d) for d in findings])


@pytest.mark.parametrize("code", sorted(FILES))
def test_a_file_breaks_one_promise(code: str) -> None:
    for at, build in enumerate(FILES[code]):
        data = build()
        findings = found(lambda data=data: decode(data, "f.tcb"))  # type: ignore[misc]
        assert [d.code for d in findings] == [code], (at, [str(d) for d in findings])
        assert findings[0].message.startswith("at byte ")


@pytest.mark.parametrize("code", sorted(TEXTS))
def test_a_text_breaks_one_promise(code: str) -> None:
    for text in TEXTS[code]:
        findings = found(lambda text=text: assemble(Source("f.tcbs", text)))  # type: ignore[misc]
        assert {d.code for d in findings} == {code}, [str(d) for d in findings]


def test_findings_stand_at_the_block_in_the_image_s_own_text() -> None:
    image = IMAGES["TCB24"][0]()
    (finding,) = judge(image, "f.tcb")
    assert finding.message == "the block names tag 32, and engine 0 has 32"
    line = finding.span.source.line_text(finding.location.line)
    assert line.strip().startswith("task @1 transfer")


def test_findings_of_a_text_stand_where_its_writer_put_the_statement() -> None:
    spread = TEXT.replace("\n", "\n\n# by hand\n").replace(
        "  join @8", "  repeat @8 count 1 {} join @8"
    )
    bad = spread.replace("signal e0.t0\n", "signal e0.t40\n").replace(
        "Y DDR:0x1000", "Y DDR:0xfffff"
    )
    with pytest.raises(InputError) as refused:
        read_image(bad.encode(), "by_hand.tcbs")
    at = {d.code: bad.splitlines()[d.location.line - 1].strip() for d in refused.value.diagnostics}
    assert at["TCB24"].startswith("task @3 transfer in DDR:0x2000")
    assert any(line.startswith("port output Y") for line in at.values())
    assert all(d.location.file == "by_hand.tcbs" for d in refused.value.diagnostics)


def test_a_repeat_that_runs_never_promises_nothing_of_its_terms() -> None:
    text = "stream e0 {\n  repeat @1 count 0 {\n    join @2 signal e0.t(99/c0)\n  }\n}\n"
    head = 'tcb 1\nimage p\nmachine m hash "" uarch u uarch_hash "" engines 1 units ()\n'
    image = assemble(Source("f", f"{head} device_units () memories () tags 8\n{text}")).image
    assert judge(image) == []


def test_looking_at_iterations_is_bounded_for_a_whole_image() -> None:
    hard = operation("-", operation("*", counter(0), 64), operation("*", counter(0), 63))
    copy = changed(COPY, inputs=(changed(X, address=hard),))
    few = with_items(Repeat(0, 1000, (copy,) * 10))
    assert judge(few) == []
    many = with_items(*(Repeat(at, 1 << 20, (copy,)) for at in range(-40, 0)))
    assert {d.code for d in judge(many)} == {"TCB22", "TCB27"}
    assert "too many iterations" in judge(many)[-1].message


@settings(max_examples=scaled(60))
@given(images())
def test_sound_images_have_no_findings(image: Image) -> None:
    assert judge(image) == []


# Files


def test_an_image_is_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "f.tcb"
    save_image(sample(), path)
    assert path.read_bytes() == encode(sample())
    assert load_image(path) == sample()


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    (finding,) = found(lambda: load_image(tmp_path / "no.tcb"))
    assert finding.code == "TCB08"
    (finding,) = found(lambda: read_image(b"\xff\xfe", "f.tcb"))
    assert finding.code == "TCB08"
    (finding,) = found(lambda: read_image(encode(IMAGES["TCB26"][0]()), "f.tcb"))
    assert finding.code == "TCB26"
    assert finding.help == "did you mean `relu`?"
