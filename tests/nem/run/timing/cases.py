"""Small programs to derive times of by hand, and what they say.

Without a profile on `npm_lite`: L2<->L1 on a DMA 4 + bytes / 32, DDR<->L2 on an sDMA 16 + bytes /
32, store on a CSTL 4 + bytes / 32, elementwise on a CSTL 1 + elements / 256, f16 products on an
NMU 2 + MACs / 2048, everything rounded up. So 1024 bytes take 36 on a DMA, and the ReLU of `X`
takes 3.
"""

from __future__ import annotations

from nacre.nem.run.timing.result import TimedResult
from tests.nem.run.timing.sketches import Machine
from tests.nem.run.timing.timed import Row, timed

LITE = 'include "npm_lite.nem"\ndevice npm_lite\nprogram case:\n'
MID = 'include "npm_mid.nem"\ndevice npm_mid\nprogram case:\n'
BUFFERS = """
buffer D : DDR (size=65536)
buffer E : DDR (size=65536)
buffer M : L2 (size=65536)
buffer N : L2 (size=65536)
buffer P : L1 (size=65536)
buffer Q : L1 (size=65536)
let X = region(P, 0, 1024) elem=f16, shape=[512], layout=C
let Y = region(Q, 0, 1024) elem=f16, shape=[512], layout=C
"""


def copy(
    target: str, source: str, size: object, deps: str = "", on: str = "", form: str = "async"
) -> str:
    """A transfer; `on` is a decorator."""
    regions = f"dst=region({target}, 0, {size}), src=region({source}, 0, {size})"
    names = f", deps=[{deps}]" if deps else ""
    return f"transfer.{form}({regions}{names}) {on}"


def load(size: object = 1024, deps: str = "", on: str = "", form: str = "async") -> str:
    """From L2 to L1."""
    return copy("P", "M", size, deps, on, form)


def lite(*lines: str) -> TimedResult:
    return timed(LITE + BUFFERS + "\n".join(lines) + "\n")


def limited(tokens: int, *lines: str) -> TimedResult:
    """On a device with few tokens and three DMAs."""
    machine = Machine(1, {"DMA": 3, "CSTL": 2}, tokens)
    return timed(machine.text() + "program case:\n" + BUFFERS + "\n".join(lines) + "\n")


def row(name: str, start: int, end: int, unit: str, *iteration: int) -> Row:
    return (name, list(iteration), start, end, unit if "@" in unit else unit + "@0")


def device_row(name: str, start: int, end: int, unit: str) -> Row:
    return (name, [], start, end, unit)


def stalls(result: TimedResult) -> dict[str, tuple[int, int, int, int]]:
    """By instance: window, dependence, token, unit."""
    steps = result.timeline.steps
    found = result.timeline.stalls
    return {
        steps.name(n): (
            int(found.window[n]),
            int(found.dependence[n]),
            int(found.token[n]),
            int(found.unit[n]),
        )
        for n in range(steps.count)
    }


def rows_by_name(result: TimedResult) -> dict[str, tuple[int, int]]:
    """By instance: start and end."""
    steps, timeline = result.timeline.steps, result.timeline
    return {
        steps.name(n): (int(timeline.start[n]), int(timeline.end[n])) for n in range(steps.count)
    }
