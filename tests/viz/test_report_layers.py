"""The layer view of the report page: its data, and what a click on a layer does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nacre.compile.estimate.estimate import estimate
from nacre.compile.estimate.result import Estimate
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.viz.layers import layer_view, write_estimate
from nacre.viz.report_data import report_data
from tests.compile.models import values

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((at for name in NAMES if (at := shutil.which(name))), None)


def some_layers() -> Module:
    """Two convolutions and what is between them and added to them."""
    builder = Builder()
    x = builder.input("<b>image</b>", "f32", (1, 16, 16, 8))
    first = builder.add("Conv", x, builder.constant(values((1, 3, 8, 8), 1)), layout="NHWC",
                        pads=(0, 1, 0, 1))  # fmt: skip
    second = builder.add("Silu", builder.add("BinOp", first, x, op="Add"))
    return builder.module(
        builder.add("Conv", second, builder.constant(values((3, 3, 8, 16), 2)), layout="NHWC")
    )


@pytest.fixture(scope="module")
def found() -> Estimate:
    return estimate(some_layers(), "npm4k", clock_mhz=800)


def test_every_statement_belongs_to_one_layer(found: Estimate) -> None:
    assert found.plan is not None
    view = layer_view(found)
    names = report_data(found.plan.ideal)["statements"]["name"]
    owned = [index for row in view["rows"] for index in row["statements"]]
    assert sorted(owned) == list(range(len(names)))
    for row, entry in zip(view["rows"], found.plan.bundle.manifest.layers, strict=True):
        expected = {*entry.tasks, *entry.loads}
        assert {names[index] for index in row["statements"]} == expected
    assert sum(row["cycles"] for row in view["rows"]) == found.plan.ideal.cycles


@pytest.fixture
def page(found: Estimate, tmp_path: Path) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium found")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path, trouble = tmp_path / "page.html", list[str]()
    write_estimate(found, path, title="</script>")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        made = browser.new_page(viewport={"width": 1400, "height": 900})
        made.on("console", lambda message: trouble.append(message.text))
        made.on("pageerror", lambda error: trouble.append(str(error)))
        made.on("request", lambda r: trouble.append(r.url) if r.url != path.as_uri() else None)
        made.goto(path.as_uri())
        made.wait_for_selector("html[data-ready]")
        yield made
        browser.close()
    assert trouble == []


def test_a_click_on_a_layer_marks_its_tasks_and_shows_its_time(page: Any, found: Estimate) -> None:  # noqa: ANN401
    assert found.plan is not None
    layer = found.plan.layers[-1]
    count = sum(1 for t in found.plan.ideal.tasks if t["name"] in layer.tasks)
    table = page.get_by_label("Layers of the model", exact=True)
    assert table.locator("tbody tr").count() == len(found.plan.layers) > 1
    table.get_by_role("button", name=layer.name, exact=True).click()
    assert page.locator("#marked-text").inner_text() == f"{layer.name}: {count} tasks"
    shown = page.evaluate("[nacre.timeline.from, nacre.timeline.to]")
    assert shown[0] <= layer.start < layer.end <= shown[1]
    assert shown[1] - shown[0] < found.plan.ideal.cycles
    marked = page.evaluate("Array.from(nacre.timeline.markedIds)")
    assert len(marked) == count


def test_a_task_leads_to_its_layer_and_the_view_keeps_its_numbers(
    page: Any,  # noqa: ANN401
    found: Estimate,
) -> None:
    assert found.plan is not None
    page.keyboard.press("n")
    first = found.plan.layers[0]
    page.locator("#details").get_by_role("button", name=first.name, exact=True).click()
    assert page.locator("#marked-text").inner_text().startswith(f"{first.name}: ")
    text = page.locator("#layers").inner_text()
    for part in ("Over the layer bound", "Time at 800 MHz", "Derated", f"{first.cycles:,}"):
        assert part in text
    assert "16 input by 128 output" in text
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_cycles_that_layers_may_take_are_drawn(page: Any, found: Estimate) -> None:  # noqa: ANN401
    assert found.plan is not None
    ranges = page.locator("#layers-table td.range-cell .range")
    expected = [found.plan.layer_band(layer) for layer in found.plan.layers]
    assert sorted(ranges.evaluate_all("all => all.map(one => one.title)")) == sorted(
        f"{one['low_cycles']:,} to {one['high_cycles']:,}" for one in expected
    )
    most = max(one["high_cycles"] for one in expected)
    widths = ranges.locator(".span").evaluate_all("all => all.map(one => one.style.width)")
    shares = sorted(float(width.rstrip("%")) / 100 for width in widths)
    assert shares == pytest.approx(
        sorted((one["high_cycles"] - one["low_cycles"]) / most for one in expected), abs=1e-4
    )


@pytest.mark.parametrize("width", [800, 1280, 1920])
def test_no_table_scrolls(page: Any, width: int) -> None:  # noqa: ANN401
    page.set_viewport_size({"width": width, "height": 900})
    # Figures of a large network: the small one has too little to say.
    page.evaluate(
        "document.querySelectorAll('#layers-table td.number .if-wide')"
        ".forEach((number) => { number.textContent = '1,234,567,890'; })"
    )
    tables = "[...document.querySelectorAll('.table')]"
    assert page.evaluate(f"{tables}.length") > 5
    assert page.evaluate(f"{tables}.filter((t) => t.scrollWidth > t.clientWidth).length") == 0
