"""A run of a plan: its slots, models, loops, files, chance and what it has written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from nacre.core.values import Array
from nacre.nac.format.values import Bytes
from nacre.nac.mep.budget import Budget
from nacre.nac.mep.files import Folder
from nacre.nac.mep.table import SLOTS
from nacre.nac.mep.values import Fault, Value, size_of
from nacre.nac.rules.plans import NAC90
from nacre.nac.run.memory import owner

Mode = Literal["infer", "train", "infer_train"]  # what a plan is asked to do
EMPTY = object()  # a slot that nothing has written


class Model(Protocol):
    """What a plan can run. One with `session()` is run through a session, which keeps state."""

    @property
    def inputs(self) -> Sequence[Any]:
        """Its inputs in order: names, or things that have a `name`."""

    def run(self, inputs: Mapping[str, Any], /) -> Sequence[Any]:
        """Its outputs in order."""


@runtime_checkable
class Tokenizer(Protocol):
    """What a plan encodes and decodes with; `token_id` or `token_to_id` is used if it is there."""

    def encode(self, text: str, /) -> Any:  # noqa: ANN401 - ids, or something that has `ids`
        """The ids of a text."""

    def decode(self, ids: list[int], /) -> str:
        """The text of ids."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a plan has written to a stream: `stdout`, `stderr` or `debug`."""

    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that a plan has loaded: how it is run, and the names of its inputs."""

    name: str
    run: Callable[[Mapping[str, Any]], Sequence[Any]]
    inputs: tuple[str, ...]
    source: Model  # as it was loaded


@dataclass(slots=True)
class Loop:
    """A loop that the plan is in."""

    end: int  # the instruction that ends it
    left: int


@dataclass(frozen=True)
class Surroundings:
    """What the caller gives to a machine."""

    models: Mapping[str, Model]
    tokenizers: Mapping[int, Any] | Any
    arrays: Mapping[str, Array]
    folder: Folder
    mode: Mode = "infer"
    resources: Mapping[str, Bytes] = field(default_factory=dict)  # of the file, by name


@dataclass
class Work:
    """The state of one run."""

    surroundings: Surroundings
    budget: Budget
    chance: np.random.Generator
    answer: Callable[[str], object]  # to a prompt
    seed: int = 0  # of what the models that it runs leave to chance
    slots: list[Any] = field(default_factory=lambda: [EMPTY] * SLOTS)
    models: dict[int, LoadedModel] = field(default_factory=dict)
    trainers: dict[int, Any] = field(default_factory=dict)  # of models that are trained
    blocks: dict[int, Any] = field(default_factory=dict)  # of models that are run by blocks
    loops: list[Loop] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    loop_ends: Mapping[int, int] = field(default_factory=dict)  # by where loops start
    at: int = 0  # the instruction that is done
    next: int = 0  # the instruction to go on with
    outputs: list[Value] | None = None
    _holders: dict[int, list[int]] = field(default_factory=dict)

    def forget_model(self, model: int) -> None:
        """Nothing is left of what was made for a model."""
        self.models.pop(model, None)
        self.trainers.pop(model, None)
        self.blocks.pop(model, None)

    def value(self, slot: int) -> Value:
        """What a slot holds."""
        found: Value = self.slots[slot]
        if found is EMPTY:
            raise Fault(NAC90, f"nothing has written slot %{slot}")
        return found

    def put(self, slot: int, value: Any) -> None:  # noqa: ANN401 - a value, or EMPTY
        """Put a value in a slot; what shares memory counts once."""
        for key, bytes_ in self._memory_of(value):
            entry = self._holders.setdefault(key, [0, bytes_])
            if entry[0] == 0:
                self.budget.require_room(bytes_)
                self.budget.live += bytes_
            entry[0] += 1
        for key, _ in self._memory_of(self.slots[slot]):
            entry = self._holders[key]
            entry[0] -= 1
            if entry[0] == 0:
                self.budget.live -= entry[1]
                del self._holders[key]
        self.slots[slot] = value

    @staticmethod
    def _memory_of(value: Any) -> Iterator[tuple[int, int]]:  # noqa: ANN401 - a value, or EMPTY
        if value is not EMPTY and (bytes_ := size_of(value)):
            yield id(owner(value) if isinstance(value, np.ndarray) else value), bytes_

    def write(self, stream: str, text: str) -> None:
        """Write to a stream; what is written counts as memory until the end."""
        self.budget.require_room(4 * len(text) + 64)
        self.budget.live += 4 * len(text) + 64
        self.written.append(Written(stream, text))
