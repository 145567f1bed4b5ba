"""A tree over many networks: relatives stand together, and the page has all of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nacre import nac
from nacre.nac.format.file import to_bytes
from nacre.nac.genome.corpus import CorpusProgram, corpus_program
from nacre.nac.genome.mining import mine, select_genes
from nacre.nac.genome.page import corpus_page
from nacre.nac.synthesis.families import family_models, family_networks
from nacre.nac.tools.opening import open_nac
from nacre.nac.tools.phylogeny import distances, tree
from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]


def programs_of(networks: list[str]) -> list[CorpusProgram]:
    chosen = {name: one for name, one in family_networks().items() if name in networks}
    return [
        corpus_program(name, open_nac(to_bytes(model.file)))
        for name, model in family_models(chosen)
    ]


def family(name: str) -> str:
    return name.rsplit("-", 2)[0]


def test_relatives_are_nearer_than_others() -> None:
    names = [
        "resnet-1.1.1-w8", "resnet-2.2.2-w8", "mobilenet2-1.2.2-w8", "mobilenet2-1.2.3.3-w8",
        "squeezenet-2-w8", "squeezenet-2.2-w8", "vit-2-w8", "vit-4-w8",
    ]  # fmt: skip
    programs = programs_of(names)
    between = distances([one.genome for one in programs])
    np.fill_diagonal(between, 2.0)
    for one, row in zip(programs, between, strict=True):
        assert family(programs[int(row.argmin())].name) == family(one.name)
    root = tree([one.name for one in programs], distances([one.genome for one in programs]))
    leaves = [family(name) for name in root.leaves]
    assert len([a for a, b in pairwise(leaves) if a != b]) == 3


@pytest.mark.full
def test_a_tree_of_a_hundred_networks_has_a_page() -> None:
    programs = programs_of(list(family_networks()))
    assert len(programs) >= 100
    root = tree([one.name for one in programs], distances([one.genome for one in programs]))
    assert sorted(root.leaves) == sorted(family_networks())
    genes = select_genes(mine([one.graph for one in programs]), 12)
    page = corpus_page(root, programs, genes)
    assert all(name in page for name in root.leaves)
    assert page.count("<tr>") >= 100
    assert genes


@pytest.mark.full
def test_a_folder_of_a_hundred_files_is_looked_at_together(tmp_path: Path, capsys: Capsys) -> None:
    for name, model in family_models(family_networks()):
        nac.save(model, tmp_path / f"{name}.nac")
    page = tmp_path / "tree.html"
    shown = invoke(capsys, "nac", "genome", str(tmp_path), "--html", str(page))
    assert shown.status == 0
    assert page.read_text().count("<text") > 100
