"""The noise view of the report page: its table, the elements of a tensor, remedies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import nacre
from nacre.compile.blame.result import Blame
from nacre.viz.noise import write_blame
from tests.compile.quantise.networks import mobile, samples
from tests.viz.chromium import CHROMIUM, Browser, Page

if CHROMIUM is None:
    pytest.skip("no Chromium found", allow_module_level=True)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Blame, Page]]:
    folder = tmp_path_factory.mktemp("noise")
    module = mobile(blocks=1)
    bundle = nacre.compile(module, "npm4k", "i8", calibration=samples(module, 3))
    found = bundle.blame(samples(module, 1)[0], remedies=1)
    write_blame(bundle, found, folder / "page.html")
    with Browser(folder / "profile") as browser:
        page = browser.open(folder / "page.html")
        yield found, page
        assert not [event for event in browser.events if "exception" in str(event["method"])]


@pytest.mark.heavy("a browser is started")
def test_every_tensor_has_a_row_and_shows_its_elements(shown: tuple[Blame, Page]) -> None:
    found, page = shown
    rows = "#noise-table table[aria-label='Noise of the tensors'] tbody tr"
    assert page.count(rows) == len(found.tensors)
    page.evaluate(f"document.querySelector({rows!r}).click()")
    detail = page.text("#noise-detail")
    assert found.tensors[0].node in detail
    assert page.count("#noise-detail .histogram span") == len(found.tensors[0].histogram.counts)
    assert "dB of y" in page.text("#noise-table")
    wide = "[...document.querySelectorAll('.table')].filter((t) => t.scrollWidth > t.clientWidth)"
    assert page.evaluate(f"{wide}.length") == 0
