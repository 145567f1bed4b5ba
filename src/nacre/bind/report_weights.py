"""What a binding did with weights, in words and as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nacre.base.compression_forms import CompressionForm
from nacre.bind.memory.constant_reads import PlainTransfer
from nacre.bind.memory.weights import CompressedTransfer, WeightChoices
from nacre.bind.task_places import TaskPlaces, plural
from nacre.nem.run.sessions.tables import align_table


class WeightReport:
    """The transfers of constants of a bound program."""

    def __init__(self, choices: WeightChoices, places: TaskPlaces) -> None:
        self._choices, self._places = choices, places

    @property
    def summary(self) -> str | None:
        """In a line; None where there are no constants."""
        choices = self._choices
        if choices.absent:
            return f"plain: {choices.absent}"
        if not choices.compressed and not choices.plain:
            return None
        if not choices.compressed:
            return f"plain, all {plural(len(choices.plain), 'transfer')}"
        before, after = self._stored
        return (
            f"{plural(len(choices.compressed), 'transfer')} compressed, {before:,} bytes in "
            f"{after:,}, {self._gain}; {len(choices.plain):,} plain"
        )

    @property
    def _gain(self) -> str:
        """What the WDM saves: of the image where that was timed, else of its transfers."""
        if self._choices.timed is None:
            saved = sum(group.saved_cycles for group in self._choices.groups)
            return f"units held for {saved:,} cycles less"
        before, after = self._choices.timed
        return f"{after:,} cycles in all" + (
            f", not {before:,}" if after != before else " as without"
        )

    @property
    def _stored(self) -> tuple[int, int]:
        """Bytes of constants that are compressed, before and after."""
        parts = self._choices.parts
        return sum(part.plain_bytes for part in parts), sum(len(part.data) for part in parts)

    @property
    def sections(self) -> Iterator[str]:
        """Every decision with its reason."""
        if self._choices.compressed:
            heading = (
                "Task",
                "Line",
                "Mode",
                "Times",
                "Bytes",
                "Compressed",
                "Cycles",
                "With WDM",
            )
            rows = map(self._row, self._choices.compressed)
            before, after = self._stored
            total = f"in memory: {before:,} bytes compressed to {after:,}"
            yield f"Weights through the WDM\n{align_table(heading, rows)}\n{total}"
        if self._choices.plain:
            yield "\n".join(["Weights as they are", *self._plain_lines()])

    def _row(self, one: CompressedTransfer) -> tuple[object, ...]:
        return (
            *(self._places.name(one.task), self._places.line(one.task)),
            *(f"{form_text(one.form)} of {one.elem}", one.times),
            *(one.plain_bytes, one.compressed_bytes, one.plain_cycles, one.cycles),
        )

    def _plain_lines(self) -> Iterator[str]:
        groups: dict[str, list[PlainTransfer]] = {}
        for one in self._choices.plain:
            groups.setdefault(one.sentence, []).append(one)
        for sentence, found in sorted(groups.items(), key=lambda item: -len(item[1])):
            yield f"{plural(len(found), 'transfer')}: {sentence}"
            for one in found:
                detail = f": {one.detail}" if one.detail else ""
                where = f"{self._places.name(one.task)} at line {self._places.line(one.task)}"
                yield f"    {where}{detail}"

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        before, after = self._stored
        return {
            "absent": self._choices.absent or None,
            "bytes": before,
            "compressed_bytes": after,
            "image_cycles": self._image_cycles,
            "compressed": list(map(self._compressed_json, self._choices.compressed)),
            "plain": [
                {
                    "task": self._places.name(one.task), "line": self._places.line(one.task),
                    "reason": one.reason, "because": one.sentence, "detail": one.detail,
                }
                for one in self._choices.plain
            ],
        }  # fmt: skip

    @property
    def _image_cycles(self) -> dict[str, int] | None:
        """What was timed to choose; None where nothing was."""
        if self._choices.timed is None:
            return None
        plain, with_wdm = self._choices.timed
        return {"plain": plain, "with_wdm": with_wdm}

    def _compressed_json(self, one: CompressedTransfer) -> dict[str, Any]:
        return {
            "task": self._places.name(one.task), "line": self._places.line(one.task),
            "mode": one.form.name, "bits": one.form.bits, "tables": one.form.tables,
            "elem": one.elem, "times": one.times, "bytes": one.plain_bytes,
            "compressed_bytes": one.compressed_bytes, "cycles_plain": one.plain_cycles,
            "cycles": one.cycles, "because": "the mode with the fewest bytes",
        }  # fmt: skip


def form_text(form: CompressionForm) -> str:
    """`palette of 3 bits`, `2 palettes of 5 bits`, `sparse`."""
    if form.name == "sparse":
        return "sparse"
    tables = "palette" if form.tables == 1 else f"{form.tables} palettes"
    return f"{tables} of {plural(form.bits, 'bit')}"
