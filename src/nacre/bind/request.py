"""What a binder is asked for, and what it gives: an image, and every decision with its reason."""

from __future__ import annotations

from msgspec import Struct

from nacre.bind.fusion import NO_CHAINS, FusedChains
from nacre.bind.memory.banks import MemoryBanks
from nacre.bind.memory.priorities import ALIKE, PriorityChoice
from nacre.bind.memory.requests import RequestChoice
from nacre.bind.memory.weights import PLAIN_WEIGHTS, WeightChoices
from nacre.bind.tag_pressure import Serialisation
from nacre.bind.uarch.reader import IDEAL, Uarch
from nacre.bind.units import UnitDecisions
from nacre.nem.model.devices import Device
from nacre.nem.plan.plan import Plan
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES
from nacre.tcb.image import Image, PortKind


class BindOptions(Struct, frozen=True):
    """How a program is bound."""

    uarch: Uarch = IDEAL
    fuse: bool = True
    wdm: bool = True  # weights may be compressed
    may_serialise: bool = False
    ddr_bytes: int = DEFAULT_DDR_BYTES


class HostPort(Struct, frozen=True):
    """What the host fills or reads: a buffer, under its own name for it."""

    name: str
    kind: PortKind
    buffer: str
    elem: str | None = None
    dims: tuple[int, ...] | None = None
    host_elem: str | None = None  # of the host's values, where it has others
    scale: float | None = None  # with `zero`, where those are quantised
    zero: int | None = None


class Host(Struct, frozen=True):
    """What is known of the other side; without ports every buffer in DDR is one."""

    ports: tuple[HostPort, ...] = ()
    constants: tuple[tuple[str, bytes], ...] = ()  # what buffers hold before a run
    observed: tuple[str, ...] = ()  # buffers that somebody looks at afterwards
    imported: tuple[str, ...] = ()  # buffers that the host provides
    layers: tuple[tuple[str, str], ...] = ()  # the layer of a task, by the task's name

    @property
    def visible(self) -> frozenset[str]:
        """Buffers that somebody outside of the program fills or reads."""
        return frozenset((*self.observed, *self.imported, *(port.buffer for port in self.ports)))


class BindRequest(Struct, frozen=True, eq=False):
    """A program without errors, and how it is bound to what."""

    plan: Plan
    name: str
    device: Device
    options: BindOptions = BindOptions()
    host: Host = Host()


class Bound(Struct, frozen=True, eq=False):
    """A bound program, and how it came about."""

    image: Image
    units: UnitDecisions
    fused: FusedChains = NO_CHAINS
    serialised: tuple[Serialisation, ...] = ()
    weights: WeightChoices = PLAIN_WEIGHTS
    banks: tuple[MemoryBanks, ...] = ()
    requests: tuple[RequestChoice, ...] = ()
    tags: tuple[tuple[int, int], ...] = ()  # how many are in use, of each engine and of DEVICE
    priority: PriorityChoice = ALIKE
