"""docs/numerics.md is true: its examples run, every opcode is explained."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from nacre.kernels.registry import PRIMITIVES
from nacre.nem.spec.opcodes import OPCODES

PAGE = (Path(__file__).parent.parent / "docs/numerics.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PREAMBLE, *REST = re.split(r"^## ", PAGE, flags=re.MULTILINE)
SECTIONS = {text.partition("\n")[0]: text.partition("\n")[2] for text in REST}
WITHOUT_EXAMPLE = {"Ulps"}  # a table


def examples(text: str) -> str:
    return "\n".join(BLOCK.findall(text))


def run_examples(text: str, names: dict[str, Any], title: str) -> list[str]:
    """Run the examples of a text; what went wrong, in doctest's words."""
    made = doctest.DocTestParser().get_doctest(examples(text), names, title, None, None)
    complaints: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    # The names stay, for later sections use the helpers of the first.
    runner.run(made, out=complaints.append, clear_globs=False)
    names.update(made.globs)
    return complaints


@pytest.mark.parametrize("title", [title for title in SECTIONS if title not in WITHOUT_EXAMPLE])
def test_the_examples_of_every_section_give_what_the_page_says(title: str) -> None:
    names: dict[str, Any] = {}
    assert run_examples(PREAMBLE, names, "helpers") == []
    assert BLOCK.search(SECTIONS[title]), "a section without example"
    assert "".join(run_examples(SECTIONS[title], names, title)) == ""


def test_an_example_that_is_wrong_would_be_found() -> None:
    complaints = run_examples("```python\n>>> 1 + 1\n3\n\n```\n", {}, "wrong")
    assert "Got:\n    2" in "".join(complaints)


def test_every_opcode_that_computes_is_explained() -> None:
    computing = {o.name for o in OPCODES.values() if o.category not in ("data_movement", "generic")}
    assert computing <= PRIMITIVES.keys()
    assert sorted(name for name in computing if f"`{name}`" not in PAGE) == []
