"""Text to bytecode and back: the canonical text, the same tree and places, the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from nacre.base.source import Source, Unreadable, read_source
from nacre.nem.bytecode.library import BytecodeSource, bytecode_source
from nacre.nem.bytecode.packing import PackOptions, content_of, pack, pack_contents, unpack
from nacre.nem.syntax.formatter import format_source
from nacre.nem.syntax.lexer import tokenize
from nacre.nem.syntax.parser import ParseResult, parse
from tests.compile.models import linear_model
from tests.nem.syntax.strategies import commented_documents, documents, wide_programs

pytestmark = pytest.mark.sampled(2)  # together they take long

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("examples", "src/nacre/nem/spec", "tests/conformance/cases")


def _parsed(path: Path) -> ParseResult | None:
    source = read_source(path)
    parsed = None if isinstance(source, Unreadable) else parse(source)
    return parsed if parsed is not None and parsed.is_valid else None


FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.nem"))]


def opened(data: bytes) -> BytecodeSource:
    source = bytecode_source(data, "f.nemb")
    assert isinstance(source, BytecodeSource), source.parsed.diagnostics
    return source


def written(source: BytecodeSource) -> bytes:
    return pack_contents([(source.member, True, source.content)])


def require_round_trip(text: str) -> None:
    """Everything that the forms promise each other about one text."""
    given, canonical = Source("f.nem", text), format_source(Source("f.nem", text))
    data = pack(text)
    assert unpack(data) == canonical
    found = opened(data)
    parsed = parse(given)
    assert found.parsed.document == parsed.document, "the same tree, every span"
    assert found.parsed.comments == parsed.comments
    assert found.size == len(text)
    assert found.line_starts == given.line_starts
    assert len(found.text) == len(text)
    assert written(found) == data
    require_canonical(canonical)


def require_canonical(text: str) -> None:
    data = pack(text)
    assert pack(unpack(data)) == data
    found, parsed = opened(data), parse(Source("f.nem", text))
    assert found.parsed.document == parsed.document
    assert found.parsed.comments == parsed.comments
    assert found.text == text
    assert written(found) == data


@pytest.mark.sampled(10)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_that_parses_comes_back(path: Path) -> None:
    parsed = _parsed(path)
    if parsed is not None:
        require_round_trip(parsed.source.text)


def test_an_example_and_a_config_come_back() -> None:
    for name in ("examples/gemm_int4.nem", "src/nacre/nem/spec/devices/npm16k.nem"):
        require_round_trip((ROOT / name).read_text())


@pytest.mark.fuzz
@given(documents)
def test_random_documents_come_back(text: str) -> None:
    require_round_trip(text)


@pytest.mark.fuzz
@given(commented_documents)
def test_random_documents_with_comments_come_back(text: str) -> None:
    require_round_trip(text)


@pytest.mark.fuzz
@given(wide_programs)
def test_wide_programs_come_back(text: str) -> None:
    require_round_trip(text)


def test_a_compiled_plan_comes_back() -> None:
    import nacre

    require_round_trip(nacre.compile(linear_model(), "npm4k").program)


def test_a_long_program_takes_a_quarter_of_its_text() -> None:
    lines = ["program p:", "buffer X : DDR (size=4096)", "buffer Y : L2 (size=4096)"]
    for i in range(200):
        deps = f", deps=[layer_{i - 1}_t]" if i else ""
        at = i % 32 * 128
        arguments = f"dst=region(Y, {at}, 128), src=region(X, {at}, 128){deps}"
        lines.append(f"layer_{i}_t = transfer.async({arguments})")
    text = "\n".join(lines) + "\n"
    require_round_trip(text)
    assert 4 * len(pack(text)) <= len(text)


def test_without_comments_nothing_else_changes() -> None:
    text = "# head\nprogram p:\n\n# a\nconst X = 1  # b\n\n# c\n\nconst Y = 2\n# end\n"
    made = content_of(Source("f.nem", text), PackOptions(comments=False, positions=False))
    assert made.text == "program p:\n\nconst X = 1\n\nconst Y = 2\n"
    assert made.comments == ()


def test_places_of_the_canonical_text_need_no_section() -> None:
    text = "const   X=1\n"
    made = content_of(Source("f.nem", text), PackOptions(positions=False))
    assert pack_contents([("", True, made)]) == pack("const X = 1\n")
    assert len(pack(text)) > len(pack("const X = 1\n"))


def _tokens(text: str) -> list[tuple[int, str]]:
    found = tokenize(Source("", text))
    return [(s, t) for s, t in zip(found.starts, found.texts, strict=False) if t]


@pytest.mark.parametrize(
    "name", ["gemm_int4", "two_engines", "conv2d_maxpool", "gemm_rmsnorm", "multi_cstl"]
)
def test_all_tokens_of_another_text_are_known_without_it(name: str) -> None:
    """Nodes stand where they stood; brackets and commas about there, and none is missing."""
    text = (ROOT / "examples" / f"{name}.nem").read_text()
    for there in (text.replace(", ", " ,   "), text.replace(", ", ","), text.replace("= ", "=")):
        source = opened(pack(there))
        known, wanted = _tokens(source.text), _tokens(there)
        assert [token for _, token in known] == [token for _, token in wanted]
        words = [pair for pair in wanted if pair[1].isidentifier() or pair[1].isdecimal()]
        assert len(set(known) & set(words)) > 0.8 * len(words)


def test_parts_in_another_order_are_known_without_the_text() -> None:
    text = "t=transfer.async(src=region(X,0,16) ,dst=region(Y,16*i,16),deps=[a])\n"
    assert opened(pack(text)).text.replace(" ", "") == text.replace(" ", "")
    text = "buffer X:L2(align=8,size=64)\n"
    assert opened(pack(text)).text == text


LEAST = "-9223372036854775808"


@pytest.mark.parametrize(
    "text",
    [
        f"const X = {LEAST}\n",
        f"const X = 1 - {LEAST} * (-{LEAST} mod 3)\nconst Y = [{LEAST}, -1, 7]\n",
        f"const X =  - 00{LEAST[1:]}+1\n",
        f"let q = per_channel(axis={LEAST}, scales=[0.5], zero_points=[{LEAST}])\n",
        f"const A = {LEAST[:-1]}7\nconst B = 1000000000000000000\nconst C = 999999999999999999\n",
    ],
)
def test_the_least_integer_comes_back(text: str) -> None:
    require_round_trip(text)
    canonical = format_source(Source("f.nem", text))
    assert LEAST in canonical or "const B" in canonical
    assert parse(Source("f.nem", canonical)).is_valid


@pytest.mark.parametrize("text", ["", "\n\n", "# alone\n", "# a\n\n# b\n", ";\n"])
def test_documents_without_code_come_back(text: str) -> None:
    require_round_trip(text)
