"""Weights that come and go while a program runs, as a plan of memory says.

A thread stands for the coprocessor of the format: it reads the pages of weights ahead that lie in
the file as kernels take them, and fills copies of the others, part by part, giving back the pages
behind it. A call waits for copies that it uses. When nothing looks at a weight any more its pages
go back to the system.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from nacre.core.values import Array
from nacre.nac.format.pages import MappedPages, empty_array, mapped_pages
from nacre.nac.format.values import Tensor
from nacre.nac.run.arrays import ArrayDomain
from nacre.nac.run.dequantisation import fill_elements
from nacre.nac.run.interpreter import Operands
from nacre.nac.run.memory import owner
from nacre.nac.run.program import PreparedInstruction
from nacre.nac.run.specialised import BoundCall
from nacre.nac.run.weights import Weights
from nacre.nac.spec.instructions import PARAMETER

_LEAST_BYTES = 1 << 16  # what is smaller is brought at once


@dataclass(frozen=True, eq=False)
class _Arrival:
    """A weight on its way."""

    array: Array
    work: Future[None] | None
    pages: MappedPages | None  # that it stays on
    is_copy: bool


class WeightLoader:
    """Brings weights in the order in which they are asked for."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._thread = ThreadPoolExecutor(1, "nac-weights")
        self._arrivals: dict[int, _Arrival] = {}  # by owner

    def __enter__(self) -> WeightLoader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(cancel_futures=True)
        for arrival in self._arrivals.values():
            if arrival.pages is not None:
                arrival.pages.give_back()
        self._arrivals.clear()

    def start(self, id_: int) -> Array:
        """The array of a weight, which gets its elements until `wait` returns."""
        arrival = self._begin(id_)
        self._arrivals[id(owner(arrival.array))] = arrival
        return arrival.array

    def _begin(self, id_: int) -> _Arrival:
        tensor = self._weights.tensor(id_)
        dtype, shape = self._weights.type_of(id_)
        pages = mapped_pages(tensor.data)
        if self._weights.is_stored_as_used(id_):
            array = self._weights.load_fresh(id_)
            work = None
            if pages is not None and array.nbytes >= _LEAST_BYTES:
                work = self._thread.submit(pages.read_ahead)
            return _Arrival(array, work, pages, is_copy=False)
        array = empty_array(shape, dtype)
        if array.nbytes < _LEAST_BYTES:
            _bring(tensor, array, pages)
            return _Arrival(array, None, None, is_copy=True)
        work = self._thread.submit(_bring, tensor, array, pages)
        return _Arrival(array, work, None, is_copy=True)

    def wait(self, array: Array) -> None:
        """Wait for the elements of an array, if it is of a weight."""
        arrival = self._arrivals.get(id(owner(array)))
        # Pages of a file come when they are looked at, whether they were read ahead or not.
        if arrival is not None and arrival.is_copy and arrival.work is not None:
            arrival.work.result()

    def free(self, key: int) -> None:
        """What belongs to an owner is not looked at any more."""
        arrival = self._arrivals.pop(key, None)
        if arrival is None:
            return
        if arrival.work is not None and not arrival.work.cancel():
            arrival.work.result()
        if arrival.pages is not None:
            arrival.pages.give_back()


@dataclass(eq=False)
class StreamingDomain(ArrayDomain):
    """A run whose weights come from a loader, and whose results have pages of their own."""

    loader: WeightLoader = field(kw_only=True)

    def load(self, index: int, instruction: PreparedInstruction) -> Any:  # noqa: ANN401 - see ArrayDomain
        """The same; a weight may still be on its way."""
        if instruction.variant != PARAMETER:
            return super().load(index, instruction)
        array = self.loader.start(instruction.id)
        self.borrowed.add(id(owner(array)))
        return array

    def call(self, index: int, instruction: PreparedInstruction, operands: Operands) -> Any:  # noqa: ANN401
        """The same, when weights have arrived."""
        for array in operands.tensors:
            self.loader.wait(array)
        return super().call(index, instruction, operands)

    def run_bound(self, call: BoundCall, operands: Operands) -> Any:  # noqa: ANN401 - see BoundCall
        """The same, with results on pages of their own."""
        return call.run(operands.tensors, empty_array)


def _bring(tensor: Tensor, array: Array, pages: MappedPages | None) -> None:
    fill_elements(tensor, array, pages)
    array.flags.writeable = False
