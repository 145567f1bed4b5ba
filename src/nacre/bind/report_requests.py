"""How transfers ask memories for data, and who goes first, in words and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nacre.bind.memory.priorities import PRIORITY_REASONS, PriorityChoice
from nacre.bind.memory.requests import REQUEST_REASONS, RequestChoice
from nacre.bind.task_places import TaskPlaces
from nacre.nem.model.program import Program
from nacre.nem.run.sessions.tables import align_table

_HEADING = ("Transfer", "Line", "Request", "Why")


class RequestReport:
    """The requests of a bound program's transfers."""

    def __init__(
        self, choices: Sequence[RequestChoice], program: Program, places: TaskPlaces
    ) -> None:
        self._choices, self._program, self._places = choices, program, places

    @property
    def sections(self) -> Iterator[str]:
        """The length of the requests of every transfer, with the reason."""
        if self._choices:
            yield f"Requests\n{align_table(_HEADING, map(self._row, self._choices))}"

    def _row(self, choice: RequestChoice) -> tuple[object, ...]:
        task = self._program.task_at[choice.position]
        place = (self._places.name(task), self._places.line(task))
        return *place, choice.burst or "-", REQUEST_REASONS[choice.reason]

    def as_json(self) -> list[dict[str, Any]]:
        """The same as plain values; a request of null bytes has the memory's own length."""
        return [
            {
                "task": self._places.name(self._program.task_at[one.position]),
                "burst": one.burst or None,
                "burst_because": REQUEST_REASONS[one.reason],
            }
            for one in self._choices
        ]


def priority_sections(choice: PriorityChoice) -> Iterator[str]:
    """Who goes first, with the reason."""
    if choice.unit is not None:
        reason = PRIORITY_REASONS[choice.reason]
        yield f"Priority\n{choice.unit} is of class {choice.priority}, before all others: {reason}"


def priority_json(choice: PriorityChoice) -> dict[str, Any]:
    """The same as plain values."""
    because = PRIORITY_REASONS[choice.reason]
    return {"unit": choice.unit, "class": choice.priority, "because": because}
