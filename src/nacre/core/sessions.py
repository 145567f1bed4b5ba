"""What a session of a module is, and who makes it.

The evaluator stands above modules, so that a module cannot name it. `nacre.core` does when it is
loaded, which Python does before it loads any part of it: whoever has a module has the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from nacre.core.values import Array

Progress = Callable[[int, int], None]  # operations that are done, of how many


class ModuleSession(Protocol):
    """A module made ready once and run many times; its state is kept between runs."""

    @property
    def peak_bytes(self) -> int:
        """The most bytes that tensors take at one time in a run."""
        ...

    @property
    def workspace_bytes(self) -> int:
        """The bytes that a session keeps between runs for the values that it computes."""
        ...

    @property
    def kept_arrays(self) -> list[Array]:
        """The arrays that a session keeps between runs: constants, and what was made of them."""
        ...

    @property
    def state(self) -> dict[str, Array]:
        """The state as it stands, by the name of the input that it feeds."""
        ...

    def reset(self) -> None:
        """Put the state back to its initial value."""
        ...

    def run(
        self, inputs: Mapping[str, Any] | None = None, *, progress: Progress | None = None
    ) -> list[Array]:
        """The outputs of one run. A state that is given as an input starts from what is given."""
        ...

    def run_checked(
        self, given: Mapping[str, Array], *, progress: Progress | None = None
    ) -> list[Array]:
        """The same for arrays that are known to be right, as `check_inputs` gives them."""
        ...


# Of a module, which is a type above this one.
MakeSession = Callable[[Any], ModuleSession]
_makers: list[MakeSession] = []


def register_evaluator(make: MakeSession) -> None:
    """Say who makes sessions of modules."""
    _makers[:] = [make]


def make_session(module: object) -> ModuleSession:
    """A session of a module, by the evaluator that is registered."""
    return _makers[0](module)
