"""Files that were written once are read for ever, to the same text."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from nacre.nem.bytecode.library import Library
from nacre.nem.bytecode.packing import pack_contents

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.rglob("*.nemb"))


def test_the_corpus_is_there() -> None:
    assert len(FILES) >= 11


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_of_the_corpus_is_read_and_written_again(path: Path) -> None:
    library = Library(path.read_bytes(), path.name, None)
    sources = {name: library.source(name) for name in library.entries}
    texts = "".join(source.canonical_text for source in sources.values())
    assert (
        hashlib.sha256(texts.encode()).hexdigest()
        == path.with_suffix(".sha256").read_text().strip()
    )
    made = [(name, library.entries[name].is_entry, s.content) for name, s in sources.items()]
    assert pack_contents(made) == path.read_bytes()
