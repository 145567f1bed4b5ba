"""Where blocks come from: names, lines and layers of statements, in the order of the text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import repeat

from nacre.nem.model.program import Decorator, Program, Task, Wait
from nacre.nem.run.sessions.naming import statement_name
from nacre.tcb.image import Origin

_DEBUG = "debug"


def origins_of(program: Program, layers: Mapping[str, str]) -> list[Origin]:
    """The origins of tasks and waits; `layers` are those of tasks by their names."""
    tasks = program.tasks
    starts = [task.node.start for task in tasks]
    found = [
        Origin(task.position, task.token or statement_name(program, task), line, layer)
        for task, line, layer in zip(
            tasks, _lines(program, starts), _layers(tasks, layers), strict=True
        )
    ]
    waits = [s for s in program.barriers if type(s) is Wait]
    if not waits:  # which is most programs
        return found
    lines = _lines(program, [wait.node.start for wait in waits])
    found += [Origin(w.position, f"wait@{line}", line) for w, line in zip(waits, lines, strict=True)]
    found.sort(key=_position)
    return found


def _position(origin: Origin) -> int:
    return origin.position


def _lines(program: Program, starts: list[int]) -> list[int]:
    """The lines of what begins at some places of the text."""
    return list(map(bisect_right, repeat(program.source.line_starts), starts))


def _layers(tasks: tuple[Task, ...], layers: Mapping[str, str]) -> list[str | None]:
    """The layers of tasks: what is said of them, or what `@debug` calls them or loops around."""
    found: list[str | None] = []
    of_loops: dict[int, str | None] = {}  # by position of the innermost
    for task in tasks:
        layer = layers.get(task.name) if layers else None
        if layer is None:
            for decorator in task.decorators:
                if decorator.name == _DEBUG and (name := _name_of(decorator)) is not None:
                    layer = name
                    break
            else:
                if task.loops:
                    innermost = task.loops[-1].position
                    if innermost not in of_loops:
                        of_loops[innermost] = task.debug_name
                    layer = of_loops[innermost]
        found.append(layer)
    return found


def _name_of(debug: Decorator) -> str | None:
    """What `@debug` calls a task."""
    name = debug.arguments[0] if debug.arguments else None
    return name if type(name) is str else None
