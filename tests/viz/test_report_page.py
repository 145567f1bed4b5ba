"""The report page in a real Chromium, without a network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nacre.nem.run.timing.result import TimedResult
from nacre.viz.report import render_report
from tests.nem.run.timing.timed import timed
from tests.viz.reports import (
    HOSTILE,
    HOSTILE_TITLE,
    NESTED,
    NOTHING,
    ONE_TOKEN,
    STUCK,
    example,
    gemm,
)

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)

if CHROMIUM is None:
    pytest.skip("no Chromium found", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

Page = Any  # of playwright, which need not be installed
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def open_report(browser: Any, tmp_path: Path) -> Iterator[Open]:  # noqa: ANN401
    """Open a result's page; at the end nothing may have complained or left the machine."""
    trouble: list[str] = []
    contexts = []

    def opened(
        result: TimedResult, *, title: str = "report", width: int = 1400, scheme: str = "light"
    ) -> Page:
        path = tmp_path / "report.html"
        path.write_text(render_report(result, title=title), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.on("request", lambda r: trouble.append(r.url) if r.url != path.as_uri() else None)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert trouble == []


def settle(page: Page) -> None:
    """Until the next frame is drawn."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def seen_range(page: Page) -> tuple[float, float]:
    settle(page)
    data = page.locator("#timeline-range").evaluate("(e) => [e.dataset.from, e.dataset.to]")
    return float(data[0]), float(data[1])


def id_of(page: Page, name: str) -> int:
    ids = page.evaluate("(name) => nacre.model.search(name)", name)
    assert len(ids) == 1
    return int(ids[0])


def place_of(page: Page, name: str) -> tuple[float, float]:
    """Where a task is drawn, on the whole page."""
    place = page.evaluate("(id) => nacre.timeline.placeOf(id)", id_of(page, name))
    box = page.locator("#timeline-canvas").bounding_box()
    return box["x"] + place["x"], box["y"] + place["y"]


def selected(page: Page) -> str:
    return str(page.locator("#details-name").inner_text())


# What is on it


@pytest.mark.parametrize("name", ["conv2d_relu", "two_engines", "multi_cstl"])
def test_an_example_loads_with_its_numbers(open_report: Open, name: str) -> None:
    result = example(name)
    page = open_report(result, title=name)
    assert page.title() == name
    assert f"{result.cycles:,}" in page.locator("#figures").inner_text()
    assert page.locator("#units tbody tr").count() == len(result.units)
    assert page.locator("#critical-list [role=option]").count() == len(result.critical_path)
    assert page.locator("#roofline svg").count() == 1
    assert page.locator("#memory svg").count() == len(
        {b.memory for b in result.timeline.steps.plan.program.buffers}
    )


@pytest.mark.parametrize("text", [NESTED, STUCK], ids=["nested loops", "stuck"])
def test_the_page_names_places_and_links_tasks_as_the_machine_does(
    open_report: Open, text: str
) -> None:
    result = timed(text, ONE_TOKEN if text is STUCK else None)
    steps = result.timeline.steps
    page = open_report(result)
    rows = page.evaluate("""() => Array.from({ length: nacre.model.count }, (_, id) => {
        const m = nacre.model;
        const names = (ids) => ids.map((other) => m.name(other));
        const all = ([a, b]) => Array.from({ length: b - a }, (_, i) => a + i);
        const users = m.users(id).flatMap(all);
        const times = [m.start[id], m.end[id]];
        return [m.name(id), ...times, m.unitText(id), names(m.deps(id)), names(users)];
    })""")
    tasks = steps.plan.program.tasks
    expected, users = [], dict[str, list[str]]()
    for task in tasks:
        for step in steps.numbers[task.position]:
            row, name = result.task_row(int(step)), steps.name(int(step))
            deps = []
            for dep in task.deps:
                target = steps.plan.program.task_at[dep]
                grid = steps.grid(task)
                at = grid.row_in(steps.grid(target), steps.row[[step]])
                deps.append(steps.name(int(steps.numbers[dep][at[0]])))
                users.setdefault(deps[-1], []).append(name)
            unit = row["unit"].replace("+", " + ") or "none"
            expected.append((name, row["start"], max(row["start"], row["end"]), unit, deps))
    assert [tuple(row[:5]) for row in rows] == expected
    assert {row[0]: sorted(row[5]) for row in rows if row[5]} == {
        k: sorted(v) for k, v in users.items()
    }


def test_hostile_text_is_shown_and_not_run(open_report: Open) -> None:
    page = open_report(timed(HOSTILE), title=HOSTILE_TITLE)
    assert page.locator("h1").inner_text() == HOSTILE_TITLE
    first = page.locator("#source [role=option]").first.inner_text()
    assert "</script><script>alert(1)</script>" in first
    assert "⟨202E⟩abc" in first
    assert page.locator("#source img").count() == 0


@pytest.mark.parametrize("text", [NOTHING, STUCK], ids=["nothing", "stuck"])
def test_an_odd_run_has_a_page_too(open_report: Open, text: str) -> None:
    page = open_report(timed(text, ONE_TOKEN if text is STUCK else None))
    for key in ("n", "+", "ArrowRight", "0", "-", "c", "Escape"):
        page.keyboard.press(key)
    assert page.locator("#stuck").is_visible() == (text is STUCK)
    if text is STUCK:
        assert page.locator("#stuck-list").inner_text() == "t1, t2"


@pytest.mark.parametrize("width", [900, 1400, 2560])
def test_nothing_sticks_out_sideways(open_report: Open, width: int) -> None:
    page = open_report(example("two_engines"), width=width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# The mouse


def test_a_click_on_a_task_shows_its_details(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    page.mouse.click(*place_of(page, "tC[1]"))
    assert selected(page) == "tC[1]"
    text = page.locator("#details").inner_text()
    for part in (
        "conv2d",
        "i = 1",
        "NMU[0]@0",
        "5,838 \N{EN DASH} 9,368",
        "3,530",
        "line 72",
        "tX[1]",
        "tW",
        "tR[1]",
    ):
        assert part in text
    assert "Started when tC[0] left the unit." in text
    page.locator("#details").get_by_role("button", name="tX[1]").click()
    assert selected(page) == "tX[1]"


def test_a_click_beside_tasks_selects_none(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    page.mouse.click(*place_of(page, "tC[1]"))
    x, y = place_of(page, "tW")
    page.mouse.click(x + 500, y)
    assert page.locator("#details-name").count() == 0


def test_hovering_tells_about_a_task(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    page.mouse.move(*place_of(page, "tC[2]"))
    page.locator("#timeline-tip").wait_for(state="visible")
    assert "tC[2] conv2d" in page.locator("#timeline-tip").inner_text()


def test_the_wheel_zooms_around_the_pointer_and_dragging_pans(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    assert seen_range(page) == (0, 17315)
    x, y = place_of(page, "tC[1]")
    page.mouse.move(x, y)
    for _ in range(5):
        page.mouse.wheel(0, -120)
        settle(page)
    low, high = seen_range(page)
    assert high - low < 17315 / 4
    assert abs(place_of(page, "tC[1]")[0] - x) < 3  # what was under the pointer stays there
    page.mouse.down()
    page.mouse.move(x - 100, y, steps=4)
    page.mouse.up()
    moved = seen_range(page)
    assert moved[0] > low
    assert moved[1] - moved[0] == pytest.approx(high - low)
    page.get_by_role("button", name="Fit").click()
    assert seen_range(page) == (0, 17315)


def test_the_map_moves_the_view(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    box = page.locator("#timeline-map").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 20, box["y"] + 10)
    assert seen_range(page)[1] == 17315


def test_a_line_of_the_source_marks_its_tasks(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    line = page.locator("#source [role=option]").filter(has_text="tC = conv2d.async")
    assert "14.1k" in line.inner_text()
    line.click()
    assert page.locator("#marked-text").inner_text() == "tC: 4 tasks"
    assert page.locator("#task-list [role=option]").count() == 4
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#task-list [role=option]").count() > 4


def test_a_statement_an_operation_and_a_link_of_the_path_can_be_chosen(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    page.locator("#waiting-table").get_by_role("button", name="tR", exact=True).click()
    assert page.locator("#marked-text").inner_text() == "tR: 4 tasks"
    page.get_by_role("button", name="By opcode").click()
    page.locator("#waiting-table").get_by_role("button", name="transfer", exact=True).click()
    assert page.locator("#marked-text").inner_text() == "transfer: 5 tasks"
    page.locator("#critical-list [role=option]").nth(1).click()
    assert selected(page) == "tC[0]"


def test_tables_sort_by_their_columns(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    table = page.locator("#waiting-table table")
    table.get_by_role("button", name="Busy").click()
    assert table.locator("tbody td:first-child").all_inner_texts()[0] == "tC"
    table.get_by_role("button", name="Busy").click()
    assert table.locator("tbody td:first-child").all_inner_texts()[-1] == "tC"
    assert table.locator("th[aria-sort=ascending]").inner_text().startswith("Busy")


# Keys alone


def test_keys_zoom_pan_and_walk_from_task_to_task(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    page.keyboard.press("+")
    page.keyboard.press("+")
    low, high = seen_range(page)
    assert high - low == pytest.approx(17315 / 4)
    page.keyboard.press("ArrowRight")
    assert seen_range(page)[0] > low
    page.keyboard.press("ArrowLeft")
    assert seen_range(page) == pytest.approx((low, high))
    page.keyboard.press("-")
    page.keyboard.press("0")
    assert seen_range(page) == (0, 17315)
    page.keyboard.press("n")
    first = selected(page)
    page.keyboard.press("n")
    assert selected(page) != first
    page.keyboard.press("p")
    assert selected(page) == first
    assert first in page.locator("#said").inner_text()


def test_the_search_finds_by_name_instance_and_operation(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    page.keyboard.press("/")
    page.keyboard.type("tC[2]")
    assert page.locator("#search-count").inner_text() == "1"
    page.keyboard.press("Enter")
    assert selected(page) == "tC[2]"
    for text, count in (
        ("tC", 4),
        ("store", 4),
        ("t", 17),
        ("TC[", 4),
        ("nothing", 0),
        ("tC[9]", 0),
    ):
        page.fill("#search", text)
        found = page.locator("#search-count").inner_text()
        assert found == (str(count) if count else "none")
    page.fill("#search", "relu")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert (selected(page), page.locator("#search-count").inner_text()) == ("tR[1]", "2 / 4")
    page.keyboard.press("Shift+Enter")
    assert selected(page) == "tR[0]"
    page.keyboard.press("Escape")
    assert page.locator("#search").input_value() == ""
    assert not page.locator("#marked").is_visible()


def test_a_found_task_out_of_sight_is_brought_into_it(open_report: Open) -> None:
    page = open_report(gemm(500))
    page.fill("#search", "tG[437]")
    page.keyboard.press("Enter")
    low, high = seen_range(page)
    start = page.evaluate("(id) => nacre.model.start[id]", id_of(page, "tG[437]"))
    assert low <= start <= high
    assert high - low < 2000


def test_lists_are_walked_with_arrows(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    page.locator("#critical-list").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert selected(page) == "tC[1]"


def test_everything_that_can_be_used_is_reached_and_named(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    wanted = page.evaluate("""() => [...document.querySelectorAll('a, button, input, [tabindex]')]
        .filter((e) => e.offsetParent !== null).length""")
    reached = []
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        found = page.evaluate("""() => {
            const e = document.activeElement;
            e.dataset.reached = 'yes';
            const name = e.getAttribute('aria-label') || e.textContent.trim();
            return e === document.body ? null : name;
        }""")
        if found is not None:
            reached.append(found)
    assert all(reached)
    assert page.evaluate("document.querySelectorAll('[data-reached]:not(body)').length") == wanted


# Looks


def test_dark_is_dark_by_preference_and_by_choice(open_report: Open) -> None:
    light = open_report(example("conv2d_relu"))
    background = "getComputedStyle(document.body).backgroundColor"
    picture = "document.getElementById('timeline-canvas').toDataURL()"
    before = light.evaluate(background), light.evaluate(picture)
    light.locator("#theme-toggle").click()
    settle(light)
    chosen = light.evaluate(background), light.evaluate(picture)
    assert chosen[0] != before[0]
    assert chosen[1] != before[1]
    dark = open_report(example("conv2d_relu"), scheme="dark")
    assert (dark.evaluate(background), dark.evaluate(picture)) == chosen
    light.locator("#theme-toggle").click()
    settle(light)
    assert (light.evaluate(background), light.evaluate(picture)) == before


def test_selecting_draws_arrows_and_marking_dims(open_report: Open) -> None:
    page = open_report(example("conv2d_relu"))
    picture = "document.getElementById('timeline-canvas').toDataURL()"
    plain = page.evaluate(picture)
    page.evaluate("(id) => nacre.select(id)", id_of(page, "tC[1]"))
    settle(page)
    with_arrows = page.evaluate(picture)
    page.fill("#search", "tS")
    settle(page)
    dimmed = page.evaluate(picture)
    page.keyboard.press("Escape")
    page.locator("body").press("Escape")
    settle(page)
    assert len({plain, with_arrows, dimmed}) == 3
    assert page.evaluate(picture) == plain


# Many tasks

FRAME_TIMES = """() => {
    const t = nacre.timeline;
    const times = [];
    for (let zoom = 1; zoom < 100000; zoom *= 2) {
        t.show(0.4 * t.span, 0.4 * t.span + t.span / zoom);
        t.draw();
        times.push(t.frameTime);
    }
    return times;
}"""


def test_drawing_takes_no_more_calls_than_there_are_pixels(open_report: Open) -> None:
    page = open_report(gemm(2000))
    calls = page.evaluate("""() => nacre.timeline.tracks.map((track) => {
        let calls = 0;
        const count = () => { calls += 1; };
        track.visit(0, nacre.model.cycles, nacre.model.cycles / 700, count, count);
        return calls;
    })""")
    assert max(calls) <= 700
    busy = page.evaluate(
        """() => nacre.timeline.tracks.map((track) => track.busyIn(0, nacre.model.cycles))"""
    )
    assert busy == [entry["busy"] for entry in gemm(2000).units.values()]


@pytest.mark.full
def test_a_hundred_thousand_tasks_load_and_draw_quickly(open_report: Open) -> None:
    result = gemm(20_000, compile=False)
    assert len(render_report(result, title="large")) < 5_000_000
    page = open_report(result)
    assert page.evaluate("nacre.model.count") == 100_001
    assert page.evaluate("performance.now()") < 6_000
    times = sorted(page.evaluate(FRAME_TIMES))
    assert times[len(times) // 2] < 50  # most of them: others share this machine
    page.fill("#search", "tG[15000]")
    page.keyboard.press("Enter")
    assert selected(page) == "tG[15000]"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert page.locator("#details-name").count() == 0
    page.mouse.click(*place_of(page, "tG[15000]"))
    assert selected(page) == "tG[15000]"
