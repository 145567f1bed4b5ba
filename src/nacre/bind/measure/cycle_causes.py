"""Where an image's cycles differ from its program's, cause by cause.

From the program on NEM's machine to the image on its hardware in steps, each timed with what one
cause brings on top of those before it. So the parts add up to the difference, whatever it is; a
cause that hides behind another one gets what it adds to that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as replace_fields

from msgspec import Struct
from msgspec.structs import replace

from nacre.base.stages import stage
from nacre.bind.fusion import NO_CHAINS, FusedChains
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions, BindRequest, Bound
from nacre.bind.uarch.reader import IDEAL, Uarch
from nacre.tcb.image import Image
from nacre.tcb.machine.instances import Instances, unroll
from nacre.tcb.machine.timing import ImageTiming, time_image, time_instances


class CauseKind(Struct, frozen=True):
    """A cause: how it is called, what it means, and the groups of figures that it comes from."""

    title: str
    meaning: str
    groups: tuple[str, ...] = ()


# What binding changes, then what figures of the hardware do, in the order in which they are added.
CAUSES = {
    "fusion": CauseKind(
        "fusion", "values that stream from unit to unit, and conversions that stores do"
    ),
    "wdm": CauseKind("WDM", "weights that are moved compressed"),
    "tags": CauseKind("tags", "order that was added for want of tags or tokens"),
    "parts": CauseKind("CSTL parts", "CSTLA and CSTLB that work apart", ("cstl",)),
    "burst": CauseKind("bursts", "requests, beside their bytes", ("dma",)),
    "queue": CauseKind("queue depth", "queues that hold so many blocks, in order", ("queue",)),
    "bank": CauseKind(
        "bank conflicts", "banks and slices that others used, or that are narrow", ("l1", "l2")
    ),
    "arbitration": CauseKind(
        "arbitration", "who goes first of those that could start", ("arbitration",)
    ),
}


class CycleCause(Struct, frozen=True):
    """What one cause adds to the cycles, below 0 where it saves some, and what they are with it."""

    cause: str
    added: int
    cycles: int

    @property
    def title(self) -> str:
        """What it is called."""
        return CAUSES[self.cause].title

    @property
    def meaning(self) -> str:
        """What it comes from."""
        return CAUSES[self.cause].meaning


class CycleSteps(Struct, frozen=True, eq=False):
    """The way from the program's cycles to the image's."""

    program: int  # cycles on NEM's machine
    ideal: int  # of the program bound to ideal hardware, which are the same
    causes: tuple[CycleCause, ...]
    timing: ImageTiming  # of the image on its own hardware

    @property
    def image(self) -> int:
        """Cycles of the image on its hardware."""
        return self.timing.cycles


def cycle_steps(request: BindRequest, bound: Bound, program_cycles: int) -> CycleSteps:
    """Time an image with one cause after the other."""
    with stage("timing: what tasks wait for"):
        instances = unroll(bound.image)
        ideal = time_image(_bind_to_ideal(request)).cycles
        unhindered = _time(instances, ())
        steps = [*_binding_steps(request, bound, unhindered.cycles)]
        timings = [*_figure_steps(instances, unhindered)]
    steps += ((cause, timing.cycles) for cause, timing in timings)
    causes, before = [], program_cycles
    for cause, cycles in steps:
        causes.append(CycleCause(cause, cycles - before, cycles))
        before = cycles
    return CycleSteps(program_cycles, ideal, tuple(causes), timings[-1][1])


def _bind_to_ideal(request: BindRequest) -> Image:
    return _bind(request, replace(request.options, uarch=IDEAL, wdm=False), NO_CHAINS)


def _bind(request: BindRequest, options: BindOptions, fused: FusedChains) -> Image:
    """The same program bound in another way, with the same chains or with none."""
    about = (request.plan, request.name, request.device)
    return bind_plan(*about, options, request.host, fused).image


def _binding_steps(request: BindRequest, bound: Bound, last: int) -> Iterator[tuple[str, int]]:
    """Cycles on ideal hardware with each decision of the binder that changes them.

    What was not decided needs no image of its own.
    """
    has_wdm = bool(bound.weights.compressed)
    with_wdm = _without_tag_limits(request, bound.fused, wdm=True) if bound.serialised else last
    yield "fusion", _without_tag_limits(request, bound.fused, wdm=False) if has_wdm else with_wdm
    yield "wdm", with_wdm
    yield "tags", last


def _without_tag_limits(request: BindRequest, fused: FusedChains, *, wdm: bool) -> int:
    """Cycles on ideal hardware of the same chains with as many tags as there may be."""
    uarch = request.options.uarch
    given = tuple(figure for figure in uarch.given if not figure.key.startswith("tags."))
    unlimited = Uarch(uarch.name, given, uarch.digest)
    options = replace(
        request.options, uarch=unlimited, wdm=wdm and request.options.wdm, may_serialise=False
    )
    return _time(unroll(_bind(request, options, fused)), ()).cycles


def _figure_steps(instances: Instances, timing: ImageTiming) -> Iterator[tuple[str, ImageTiming]]:
    """The image with the figures of one group after the other; at the end with all of them."""
    figures = instances.image.machine.figures
    held: tuple[tuple[str, int | str], ...] = ()
    of_figures = {cause: kind.groups for cause, kind in CAUSES.items() if kind.groups}
    last = list(of_figures)[-1]
    for cause, groups in of_figures.items():
        more = tuple((key, value) for key, value in figures if key.partition(".")[0] in groups)
        held += more
        if more or cause == last:
            timing = _time(instances, figures if cause == last else held)
        yield cause, timing


def _time(instances: Instances, figures: tuple[tuple[str, int | str], ...]) -> ImageTiming:
    machine = replace(instances.image.machine, figures=figures)
    image = replace(instances.image, machine=machine)
    return time_instances(replace_fields(instances, image=image))
