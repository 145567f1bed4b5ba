"""The page about a binding in a real Chromium, without a network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import nacre
from nacre.binding import prove_binding
from nacre.viz import binding_runs
from nacre.viz.binding_page import render_binding
from tests.bind.test_fusion import PROGRAM as CHAINED
from tests.bind.test_store_formats import BODY, HEAD
from tests.viz.chromium import CHROMIUM, Browser, Page
from tests.viz.reports import EXAMPLES, HOSTILE, HOSTILE_TITLE

if CHROMIUM is None:
    pytest.skip("no Chromium found", allow_module_level=True)

pytestmark = pytest.mark.heavy("a browser")
CONV = EXAMPLES / "conv2d_relu.nem"
CONVERTED = HEAD + BODY
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


@pytest.fixture
def open_binding(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open the page of a program; at the end nothing may have complained or left the machine."""
    pages: list[Page] = []

    def opened(
        program: str | Path, *, title: str | None = None, width: int = 1400, scheme: str = "light"
    ) -> Page:
        measured = nacre.bind(program).measure()
        path = tmp_path / "binding.html"
        path.write_text(render_binding(measured, prove_binding(measured), title=title))
        pages.append(browser.open(path, width=width, scheme=scheme))
        return pages[-1]

    yield opened
    for page in pages:
        assert page.trouble == []
        page.close()


def place_of(page: Page, name: str, *, is_image: bool) -> tuple[float, float]:
    """Where a task is drawn in one of the runs."""
    x, y = page.evaluate(f"""(() => {{
        const id = nacre.model.search({name!r})[0];
        const place = nacre.timeline.placeOf({"id" if is_image else "nacre.model.counterpart(id)"});
        const box = document.getElementById('timeline-canvas').getBoundingClientRect();
        return [box.x + place.x, box.y + place.y];
    }})()""")
    return x, y


def test_the_head_has_the_numbers(open_binding: Open) -> None:
    page = open_binding(CONV)
    text = page.text("header")
    for part in ("conv2d_relu", "npm_lite", "17,315 cycles", "17,315, equal", "17,603 cycles",
                 "1.017", "proved", "7 in 1 stream", "4 of 64"):  # fmt: skip
        assert part in text


@pytest.mark.parametrize("is_image", [False, True])
def test_a_click_in_one_run_shows_both(open_binding: Open, is_image: bool) -> None:
    page = open_binding(CONV)
    page.click(*place_of(page, "tC[1]", is_image=is_image))
    assert page.text("#details-name") == "tC[1]"
    text = page.text("#details")
    for part in ("i = 1", "line 72", "5,838", "9,368", "6,126", "9,656", "3,530 for a free unit",
                 "e0.t(c0 mod 2 + 2) ≥ (c0/2)*4 + 1", "e0.t0 ≥ 1"):  # fmt: skip
        assert part in text
    counterpart = page.evaluate("nacre.model.counterpart(nacre.state.selected)")
    assert page.evaluate(f"nacre.model.isImage({counterpart})") is not is_image
    assert page.evaluate(f"nacre.model.name({counterpart})") == "tC[1]"


def test_a_conversion_has_the_block_of_its_store(open_binding: Open) -> None:
    page = open_binding(CONVERTED)
    page.evaluate("nacre.select(nacre.model.search('q[2]')[0])")
    assert page.text("#details-name") == "q[2]"
    assert "that of s, which does it on its way" in page.text("#details")
    block = page.evaluate("nacre.model.counterpart(nacre.state.selected)")
    assert page.evaluate(f"nacre.model.name({block})") == "s[2]"
    assert "s\t" in page.text("#conversions")


def test_both_runs_are_brought_into_sight(open_binding: Open) -> None:
    page = open_binding(EXAMPLES / "two_engines.nem")
    page.evaluate("nacre.timeline.zoom(0.1)")
    page.evaluate("nacre.select(nacre.model.search('tG1[2]')[0])")
    page.settle()
    seen = """(id) => { const y = nacre.timeline.placeOf(id).y;
        return y > 0 && y < document.getElementById('timeline-scroll').clientHeight; }"""
    assert page.evaluate(f"({seen})(nacre.state.selected)")
    assert page.evaluate(f"({seen})(nacre.model.counterpart(nacre.state.selected))")


def test_the_counterpart_is_outlined(open_binding: Open) -> None:
    page = open_binding(CONV)
    lane = """(() => {
        const canvas = document.getElementById('timeline-canvas');
        const at = nacre.timeline.placeOf(nacre.model.counterpart(nacre.model.search('tC[1]')[0]));
        return canvas.getContext('2d').getImageData(0, at.y - 13, canvas.width, 26).data.join();
    })()"""
    before = page.evaluate(lane)
    page.click(*place_of(page, "tC[1]", is_image=True))
    assert page.evaluate(lane) != before


def test_hovering_tells_about_a_block(open_binding: Open) -> None:
    page = open_binding(CONV)
    page.move(*place_of(page, "tR[2]", is_image=True))
    assert "tR[2] relu" in page.text("#timeline-tip")
    assert "CSTLA[0]@0, image" in page.text("#timeline-tip")


def test_keys_walk_and_search_finds(open_binding: Open) -> None:
    page = open_binding(CONV)
    page.press("n")
    first = page.text("#details-name")
    page.press("n")
    assert page.text("#details-name") != first
    page.press("/")
    for key in "tC[2]":
        page.press(key)
    page.press("Enter")
    assert page.text("#details-name") == "tC[2]"
    assert page.text("#marked-text") == "“tC[2]”: 1 task"
    page.press("Escape")
    page.press("Escape")
    assert page.count("#details-name") == 0


def test_causes_banks_chains_and_reasons_stand_in_tables(open_binding: Open) -> None:
    page = open_binding(CONV)
    assert page.count("#causes-table tbody tr") == 10
    assert "Bursts\t+288" in page.text("#causes-table")
    assert page.count("#memory-maps details") == 2
    assert page.count("#memory-maps canvas") == 2
    assert "2 pairs: @materialized forbids it" in page.text("#not-fused")
    chained = open_binding(CHAINED)
    assert "c → r → s" in chained.text("#chains-table")


def test_decisions_are_filtered_by_words_and_by_kind(open_binding: Open) -> None:
    page = open_binding(CONV)
    rows = "#decisions-table tbody tr"
    assert page.count(rows) == 19
    page.evaluate("document.querySelector('[data-kind=Addresses]').click()")
    assert page.count(rows) == 7
    page.evaluate("document.getElementById('decision-filter').focus()")
    for key in "L1[0]":
        page.press(key)
    assert page.count(rows) == 3
    assert page.text("#decisions-count") == "3 of 19"


def test_hostile_text_is_shown_and_not_run(open_binding: Open) -> None:
    page = open_binding(HOSTILE, title=HOSTILE_TITLE)
    assert page.text("h1") == HOSTILE_TITLE
    assert "</script><script>alert(1)</script>" in page.text("#source")
    assert page.count("#source img") == 0


@pytest.mark.parametrize("width", [360, 600, 900, 1600])
def test_nothing_sticks_out_sideways(open_binding: Open, width: int) -> None:
    for program in (CONV, CHAINED):
        page = open_binding(program, width=width)
        page.press("n")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [800, 1400])
def test_long_names_break_and_no_head_is_cut(open_binding: Open, width: int) -> None:
    text = CONV.read_text()
    for name in ("tC", "tR", "X_L2"):
        text = re.sub(rf"\b{name}\b", f"{'projection_of_a_head_' * 5}{name}", text)
    page = open_binding(text, width=width)
    parts = "[...document.querySelectorAll('.table, .list-head span')]"
    wide = f"{parts}.filter((e) => e.scrollWidth > e.clientWidth)"
    assert page.evaluate(f"{wide}.map((e) => e.textContent.slice(0, 40))") == []


def test_conflicts_are_counted_where_buffers_have_any(open_binding: Open) -> None:
    shared = "Tiles of two buffers that are used at once share a bank 448 times"
    assert shared in open_binding(CONV).text("#memory-maps")
    text = open_binding(CHAINED).text("#memory-maps")
    assert "no two buffers in it are used at once." in text
    assert "Tiles of two buffers" not in text


def test_very_many_tasks_are_drawn_as_shares(
    open_binding: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binding_runs, "MOST_TASKS", 10)
    page = open_binding(CONV)
    assert "17 tasks are too many" in page.text("#left-out")
    busy = page.evaluate("nacre.timeline.tracks.map((t) => t.busyIn(0, nacre.model.cycles))")
    assert busy == pytest.approx(page.evaluate("nacre.model.units.map((unit) => unit.busy)"))
    for key in ("n", "+", "ArrowRight", "0", "-", "Escape"):
        page.press(key)
    assert page.count("#statements-table tbody tr") == 5


def test_dark_is_dark_by_preference_and_by_choice(open_binding: Open) -> None:
    looks = """(() => [getComputedStyle(document.body).backgroundColor,
        document.querySelector('.touch-map').toDataURL()])()"""
    light = open_binding(CONV)
    before = light.evaluate(looks)
    light.evaluate("document.getElementById('theme-toggle').click()")
    dark = open_binding(CONV, scheme="dark")
    assert before != light.evaluate(looks) == dark.evaluate(looks)


CONTRAST = """(() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (e) => {
        const colour = parse(getComputedStyle(e).backgroundColor);
        return colour.length < 4 || colour[3] > 0.5 ? colour : behind(e.parentElement);
    };
    const found = [];
    for (const e of document.querySelectorAll('main *, aside *')) {
        const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
        if (!own || !e.checkVisibility()) continue;
        const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) found.push([e.className || e.tagName, e.textContent.slice(0, 30), ratio]);
    }
    return found;
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_told_from_what_is_behind_it(open_binding: Open, scheme: str) -> None:
    page = open_binding(CONV, scheme=scheme)
    page.press("n")
    assert page.evaluate(CONTRAST) == []


def test_everything_that_can_be_used_is_named(open_binding: Open) -> None:
    page = open_binding(CONV)
    page.press("n")
    unnamed = page.evaluate("""[...document.querySelectorAll('a, button, input, summary, canvas, '
        + '[tabindex], table, [role=img]')]
        .filter((e) => e.checkVisibility() && !e.closest('[aria-hidden=true]'))
        .filter((e) => !e.getAttribute('aria-label') && !e.textContent.trim())
        .map((e) => e.outerHTML)""")
    assert unnamed == [
        '<canvas id="timeline-canvas"'
        + page.evaluate("document.getElementById('timeline-canvas').outerHTML").partition(
            '"timeline-canvas"'
        )[2]
    ]
