"""Too few tags: an error at the place of most pressure, or more order and the same meaning."""

from __future__ import annotations

import re

import pytest

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import Source
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.bind.uarch.reader import Uarch, read_uarch
from nacre.tcb.image import Image
from nacre.tcbcheck.verify import verify_image
from tests.bind.interleavings import instances, run_by_tags, value
from tests.bind.programs import PROGRAMS, checked
from tests.bind.test_order import pairs

pytestmark = pytest.mark.sampled(2)  # together they take long


def uarch_of(tags: int) -> Uarch:
    text = f"uarch few {{ tags {{ engine = {tags} device = {tags} }} }}"
    result = read_uarch(Source("few.uarch", text))
    assert result.diagnostics == ()
    return result.uarch


def tags_used(image: Image) -> dict[int, int]:
    """One more than the greatest tag of every space."""
    used: dict[int, int] = {}
    for stream in image.streams:
        for block, counters in instances(stream.items):
            tags = [(wait.tag, 1) for wait in block.waits]
            tags += [(raised.tag, raised.count) for raised in block.sets]
            tags += [(block.signal, 1)] if block.signal is not None else []
            for tag, count in tags:
                end = value(tag.index, counters) + count
                used[tag.engine] = max(used.get(tag.engine, 0), end)
    return used


@pytest.mark.parametrize("most", [2, 3, 4, 6, 9])
@pytest.mark.parametrize("name", PROGRAMS)
def test_within_a_number_of_tags(name: str, most: int) -> None:
    plan, device = checked(PROGRAMS[name])
    counts = uarch_of(most)
    needed = tags_used(bind_plan(plan, "p", device).image)
    if max(needed.values()) <= most:
        image = bind_plan(plan, "p", device, BindOptions(counts)).image
    else:
        with pytest.raises(InputError) as raised:
            bind_plan(plan, "p", device, BindOptions(counts))
        (finding,) = raised.value.diagnostics
        assert finding.code == "BND01"
        assert f"has {most}" in finding.message
        try:
            image = bind_plan(plan, "p", device, BindOptions(counts, may_serialise=True)).image
        except InputError:  # not even one thing at a time will do
            assert most < 5
            return
    assert max(tags_used(image).values()) <= most
    assert verify_image(plan, image) == []
    ordered = pairs(plan)
    for seed in range(3):
        place = {key: at for at, key in enumerate(run_by_tags(image, seed))}
        assert all(place[u] < place[v] for u, v in ordered)


def test_the_finding_stands_at_the_loop_and_says_who_takes_what() -> None:
    plan, device = checked(PROGRAMS["loop"])
    with pytest.raises(InputError) as raised:
        bind_plan(plan, "p", device, BindOptions(uarch_of(4)))
    (finding,) = raised.value.diagnostics
    assert finding.message == (
        "the order takes 5 tags of engine 0, which has 4: 1 outside of loops, 4 in loop `i` "
        "(3 times 1 and 1 to count iterations)"
    )
    span = finding.span
    assert span.source.text[span.start :].startswith("loop i in")
    assert finding.help is not None
    assert "max_in_flight" in finding.help
    assert "3 tags are enough" in finding.help


@pytest.mark.parametrize("most", [1, 2, 3, 4, 6, 9])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_shares_add_up_and_the_help_says_the_least_number(name: str, most: int) -> None:
    for may_serialise in (False, True):
        finding = find_too_few(name, most, may_serialise=may_serialise)
        if finding is None:
            continue
        head, _, shares = finding.message.partition(": ")
        needed = int(head.split()[3])
        assert sum(int(n) for n in re.findall(r"(\d+) (?:in loop|outside)", shares)) == needed
        assert finding.help is not None
        least = re.search(r"(\d+)(?: tags are enough|: give)", finding.help)
        assert least is not None
        if ": give" in least[0]:
            assert "allow" not in finding.help
            assert "max_in_flight" not in finding.help
            assert int(least[1]) > most
        else:
            assert not may_serialise
            assert int(least[1]) <= most
        engine_or_device = finding.message.split(" tags of ")[1].split(",")[0]
        enough = find_too_few(name, int(least[1]), may_serialise=True)
        assert enough is None or f"tags of {engine_or_device}," not in enough.message
        fewer = find_too_few(name, int(least[1]) - 1, may_serialise=True)
        assert fewer is not None or int(least[1]) == 1


def find_too_few(name: str, most: int, *, may_serialise: bool) -> Diagnostic | None:
    """The finding with so many tags; None where they are enough."""
    plan, device = checked(PROGRAMS[name])
    try:
        bind_plan(plan, "p", device, BindOptions(uarch_of(most), may_serialise=may_serialise))
    except InputError as error:
        (finding,) = error.diagnostics
        return finding
    return None
