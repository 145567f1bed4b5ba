"""Files that a grammar is learned from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import Unreadable, read_bytes, whole_file
from nacre.nac.format.file import to_bytes
from nacre.nac.rules.synthesis import NAC58
from nacre.nac.run.model import NacModel, load
from nacre.nac.save import move_weights
from nacre.nac.synthesis.grammar import Grammar, learn, read_grammar
from nacre.nac.synthesis.tiles import Specimen, specimen
from nacre.nac.tools.genome import Genome
from nacre.nac.tools.opening import open_nac

_MOST_GRAMMAR = 4 << 20  # bytes
Source = str | Path | NacModel


@dataclass(frozen=True)
class Corpus:
    """A grammar, and the genomes of what it was learned from; none where it was read as such."""

    grammar: Grammar
    genomes: tuple[Genome, ...] = ()


def learn_grammar(sources: Iterable[Source]) -> Grammar:
    """The grammar of files and models; InputError has all that is wrong with them."""
    return corpus_of(list(sources)).grammar


def corpus_of(sources: Sequence[Source], names: Sequence[str] | None = None) -> Corpus:
    """Files and models as a corpus; one grammar in JSON stands for itself."""
    if len(sources) == 1 and isinstance(sources[0], str | Path):
        path = Path(sources[0])
        if path.suffix.lower() == ".json":
            return Corpus(_read_grammar_file(path))
    called = names or [_name(source, at) for at, source in enumerate(sources)]
    specimens: list[Specimen] = []
    problems: list[Diagnostic] = []
    for name, source in zip(called, sources, strict=True):
        try:
            specimens.append(read_specimen(name, source))
        except InputError as error:
            problems += error.diagnostics
    if problems:
        raise InputError(problems)
    return Corpus(learn(specimens), tuple(one.program.genome for one in specimens))


def read_specimen(name: str, source: Source) -> Specimen:
    """A file or a model to learn from."""
    if isinstance(source, NacModel):
        is_internal = source.file.header.is_internal
        file = source.file if is_internal else move_weights(source, True)
        return specimen(name, open_nac(to_bytes(file)), source)
    return specimen(name, open_nac(Path(source)), load(source))


def _read_grammar_file(path: Path) -> Grammar:
    raw = read_bytes(path, limit=_MOST_GRAMMAR)
    if isinstance(raw, Unreadable):
        raise InputError([NAC58.at(whole_file(str(path)), f"the file {raw.reason}")])
    return read_grammar(raw, str(path))


def _name(source: Source, at: int) -> str:
    return f"model{at}" if isinstance(source, NacModel) else Path(source).stem
