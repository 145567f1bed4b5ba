"""Files of every version stay readable, and are what they were; images are small."""

from __future__ import annotations

from pathlib import Path

import msgspec.structs
import pytest

import nacre
from nacre.base.source import Source
from nacre.nem.bytecode.packing import PackOptions, content_of, pack_contents
from nacre.tcb.binary.encoding import decode, encode
from nacre.tcb.judge import judge
from nacre.tcb.text.disassembly import disassemble
from tests.tcb.corpus import CORPUS, IMAGES

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(CORPUS.glob("*.tcb"))
EXAMPLES = sorted((ROOT / "examples").glob("*.nem"))


def test_there_is_a_file_for_each_image() -> None:
    assert {path.stem for path in FILES} >= IMAGES.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_the_corpus_is_read(path: Path) -> None:
    image = decode(path.read_bytes())
    assert disassemble(image) == path.with_suffix(".tcbs").read_text(encoding="utf-8")
    assert encode(image) == path.read_bytes()
    assert judge(image) == []


@pytest.mark.parametrize("uarch", ["ideal", None])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_image_is_hardly_larger_than_its_program_as_bytecode(
    path: Path, uarch: str | None
) -> None:
    source = Source("p.nem", path.read_text(encoding="utf-8"))
    content = content_of(source, PackOptions(comments=False, positions=False))
    image = nacre.bind(path, uarch).image
    assert judge(image) == []
    bare = msgspec.structs.replace(image, constants=(), origins=(), source="p.nem")
    assert len(encode(bare)) < 1.2 * len(pack_contents([("", True, content)]))
