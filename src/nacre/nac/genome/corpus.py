"""Programs that are looked at together: the genome of each, its graph, and its known patterns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nacre.nac.genome.graph import ProgramGraph, graph_of
from nacre.nac.genome.matching import Occurrence, pattern_counts, recognise
from nacre.nac.tools.genome import Genome, genome
from nacre.nac.tools.opening import OpenedFile


@dataclass(frozen=True)
class CorpusProgram:
    """A program of a corpus."""

    genome: Genome
    graph: ProgramGraph

    @property
    def name(self) -> str:
        """What it is called in the corpus."""
        return self.genome.name

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """The patterns of the library, wherever they stand in it."""
        return recognise(self.graph)

    @cached_property
    def patterns(self) -> dict[str, int]:
        """How often each pattern with a name occurs; activations written out are not counted."""
        return pattern_counts(one for one in self.occurrences if not one.role)


def corpus_program(name: str, opened: OpenedFile) -> CorpusProgram:
    """A file as a program of a corpus."""
    return CorpusProgram(genome(name, opened.file), graph_of(opened, name))
