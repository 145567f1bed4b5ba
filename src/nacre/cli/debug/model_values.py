"""Values of a model in the debugger: its inputs and outputs, and what layers leave in memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.base.excerpt import backquote, safe
from nacre.cli.debug.bundle_names import BundleNames, no_bundle
from nacre.nem.run.memory.host import host_error
from nacre.nem.run.memory.regions import UnknownNameError
from nacre.nem.run.sessions.references import parse_reference

if TYPE_CHECKING:
    import numpy as np

    from nacre.base.elements import ElementType
    from nacre.compile.bundle.manifest import LayerEntry, Port, Result
    from nacre.nem.run.sessions.session import Session

_BEHIND = re.compile(r"\s*(?P<index>\[[^\[\]]*\])?(?P<rest>$|\s.*|=.*)", re.DOTALL)
_LAYER = re.compile(r"layer\s+(?P<name>.*)", re.DOTALL)


@dataclass(frozen=True, eq=False)
class ModelValue:
    """An array of the model as the memory has it now, and which of its elements were written."""

    heading: str
    buffer: str
    values: np.ndarray[Any, Any]
    written: np.ndarray[Any, Any]
    element: ElementType
    overwritten: str | None = None  # by what, where that is known

    @property
    def warning(self) -> str | None:
        """What is to be said where not all of it was written, or something else lies there."""
        missing = int(self.written.size - self.written.sum())
        if not missing:
            return self.overwritten
        if missing == self.written.size:
            return "nothing has written it yet"
        return f"nothing has written {missing} of its {self.written.size} elements yet"


@dataclass(frozen=True)
class ValueName:
    """A value of the model as a command names it: an input, an output, or what a layer leaves."""

    name: str
    is_layer: bool
    index: str  # `[0, 3:5]`, or nothing
    rest: str  # what follows


def parse_value(names: BundleNames | None, text: str) -> ValueName | None:
    """The value of the model that a text begins with; None where it begins with something else.

    Names of a model are whatever they are there: `input.1`, `the logits`. The longest counts.
    """
    if names is None and re.match(r"layer\s+(?!and\b|or\b|mod\b)[\w/]", text.strip()):
        raise no_bundle()
    if names is None:
        return None
    layer = _LAYER.fullmatch(text.strip())
    rest = layer["name"] if layer else text.strip()
    known = names.by_name if layer else {port.name for port in _ports(names)}
    for name in sorted(known, key=len, reverse=True):
        match = re.fullmatch(_BEHIND, rest[len(name) :]) if rest.startswith(name) else None
        if match is not None:
            return ValueName(name, layer is not None, match["index"] or "", match["rest"].strip())
    if layer:
        names.layers(re.split(r"[\[=]", rest)[0].strip())  # which says what is wrong with it
    return None


def read_values(names: BundleNames, session: Session, named: ValueName) -> list[ModelValue]:
    """What the memory has of a value: of a node, what every layer leaves that works for it."""
    if not named.is_layer:
        return [_select_elements(_port_value(session, find_port(names, named.name)), named.index)]
    results = [(one, result) for one in names.layers(named.name) for result in one.results]
    if not results:
        raise host_error(f"{backquote(named.name)} leaves no value of its own: it moves one")
    values = [_result_value(session, one, result, names) for one, result in results]
    return [_select_elements(value, named.index) for value in values]


def find_port(names: BundleNames, name: str) -> Port:
    """An input or output by its name; an input where both have it."""
    return next(port for port in _ports(names) if port.name == name)


def _ports(names: BundleNames) -> tuple[Port, ...]:
    return (*names.manifest.inputs, *names.manifest.outputs)


def port_names(names: BundleNames) -> list[str]:
    """What the model calls its inputs and outputs."""
    return list(dict.fromkeys(port.name for port in _ports(names)))


def buffer_name(names: BundleNames | None, text: str) -> str:
    """The buffer of an input or output where a text is its name; else the text as it is."""
    ports = {} if names is None else {port.name: port.buffer for port in reversed(_ports(names))}
    return ports.get(text.strip(), text)


def _port_value(session: Session, port: Port) -> ModelValue:
    """An input or output in the model's own type."""
    from nacre.base.elements import GRAPH_TYPES

    data, written = _buffer_bytes(session, port.buffer)
    dtype = GRAPH_TYPES[port.elem].dtype
    values = port.real(port.in_model_order(data.view(dtype)))
    shape = "x".join(map(str, port.shape))
    storage = "" if port.elem == port.dtype else f", {port.elem} in memory"
    if port.scale is not None:
        storage += f" with scale {port.scale:.6g} and zero point {port.zero or 0}"
    if port.axes is not None:
        storage += f", as {'x'.join(map(str, port.memory_shape))} there"
    heading = f"{safe(port.name)}: {port.dtype} {shape} in {safe(port.buffer)}{storage}"
    flags = port.in_model_order(_whole_elements(written, dtype))
    return ModelValue(heading, port.buffer, values, flags, GRAPH_TYPES[port.dtype])


def _result_value(
    session: Session, layer: LayerEntry, result: Result, names: BundleNames
) -> ModelValue:
    """What a layer leaves, as it lies in memory: others may have that place before and after."""
    import numpy as np

    from nacre.base.elements import GRAPH_TYPES

    data, written = _buffer_bytes(session, result.buffer)
    dtype = GRAPH_TYPES[result.elem].dtype
    reach = 1 + sum((n - 1) * s for n, s in zip(result.shape, result.strides, strict=True))
    part = slice(result.offset, result.offset + reach * dtype.itemsize)
    values = data[part].copy().view(dtype)
    flags = _whole_elements(written[part], dtype)

    def strided(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        steps = [stride * array.itemsize for stride in result.strides]
        return np.lib.stride_tricks.as_strided(array, result.shape, steps).copy()

    shape = "x".join(map(str, result.shape))
    where = f"{safe(result.buffer)}, from byte {result.offset}"
    heading = f"{safe(layer.name)} %{result.value}: {result.elem} {shape} in {where}"
    others = (
        _other_writer(session, layer, result, part, names) if reach == prod(result.shape) else None
    )
    return ModelValue(
        heading, result.buffer, strided(values), strided(flags), GRAPH_TYPES[result.elem], others
    )


def _other_writer(
    session: Session, layer: LayerEntry, result: Result, part: slice, names: BundleNames
) -> str | None:
    """Who else wrote where a layer leaves its result, if that was later, or it has not begun."""
    layer_tokens = {*layer.tasks, *layer.loads}
    for run in session.who_wrote(f"{result.buffer}[{part.start}:{part.stop}]"):
        owner = names.layer_of(run.writer)
        if run.writer is not None and owner is not None and owner.name != layer.name:
            return f"{run.writer} of layer {safe(owner.name)} was the last to write some of it"
        if run.writer is None or run.writer.partition("[")[0] not in layer_tokens:
            return "the layer has not written all of it"
    return None


def _buffer_bytes(
    session: Session, buffer: str
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    import numpy as np

    storage = session.memory.storage(session.select(buffer).located.buffer)
    written = storage.written if storage.missing else np.ones(storage.data.size, np.bool_)
    return storage.data.copy(), written


def _whole_elements(written: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Which elements have all of their bytes written."""
    import numpy as np

    return np.asarray(written.reshape(-1, dtype.itemsize).all(axis=1))


def _select_elements(value: ModelValue, index: str) -> ModelValue:
    """Some elements of a value."""
    import numpy as np

    if not index:
        return value
    try:
        reference = parse_reference(f"value{index}")
    except UnknownNameError as error:
        raise host_error(str(error)) from None
    if reference is None:
        raise host_error(f"{backquote(index)} selects nothing; write such as [0, 3:5]")
    try:
        items = reference.groups[0]
        values, written = np.asarray(value.values[items]), np.asarray(value.written[items])
    except (IndexError, ValueError):
        shape = list(value.values.shape)
        raise host_error(f"{backquote(index)} lies outside of the shape {shape}") from None
    heading = f"{value.heading}, elements {index}"
    return ModelValue(heading, value.buffer, values, written, value.element, value.overwritten)


def port_array(names: BundleNames, name: str, path: Path) -> np.ndarray[Any, Any]:
    """An array for an input or output, from a file, as its buffer holds it."""
    from nacre.base.elements import GRAPH_TYPES
    from nacre.cli.array_values import read_array
    from nacre.cli.arrays import unreadable_reason
    from nacre.compile.bundle.compiled_model import require_range

    port = find_port(names, name)
    reason = unreadable_reason(path)
    if reason is not None or path.suffix != ".npy":
        raise host_error(reason or f"{backquote(str(path))} is no .npy file")
    array = read_array(str(path), GRAPH_TYPES[port.dtype].dtype)
    if array.shape != port.shape:
        shape, expected = list(array.shape), list(port.shape)
        raise host_error(
            f"{backquote(str(path))} has the shape {shape}, {backquote(name)} {expected}"
        )
    if array.dtype != GRAPH_TYPES[port.dtype].dtype:
        raise host_error(
            f"{backquote(str(path))} holds {array.dtype}, {backquote(name)} is {port.dtype}"
        )
    require_range(port, array)
    return port.to_memory(array)
