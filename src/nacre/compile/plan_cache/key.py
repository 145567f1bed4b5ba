"""What a plan depends on, as a key: model, device, options, data, and nacre itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields

import numpy as np

from nacre.compile.legalise.lowerings import has_registered_forms
from nacre.compile.options import Calibration, Options
from nacre.compile.plan_digest import plan_digest
from nacre.compile.storage.user_cache import code_digest
from nacre.compile.target import Target
from nacre.core.module import Module
from nacre.core.storage import Reference, referring_text, stored_constants

_OWN_FIELDS = ("device", "calibration")  # of the options: what has parts of its own in the key


def plan_key(module: Module, target: Target, options: Options) -> str | None:
    """Equal where plans are; None where a plan depends on what no key can hold."""
    if has_registered_forms():
        return None
    digest = hashlib.blake2b(digest_size=32)
    for part in _parts(module, target, options):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _parts(module: Module, target: Target, options: Options) -> Iterator[bytes | memoryview]:
    yield code_digest()
    yield from _module_parts(module)
    device = target.device
    facts = (target.head, device.name, plan_digest(device), _plain(device.characteristics))
    yield repr(facts).encode()
    values = [(f.name, getattr(options, f.name)) for f in fields(options)]
    told = [(name, _plain(value)) for name, value in values if name not in _OWN_FIELDS]
    yield repr(told).encode()
    yield from _calibration_parts(options.calibration)


def _plain(value: object) -> object:
    """A value with one text: sets are sorted. The order of a precision map means something."""
    if isinstance(value, Mapping):
        return [(key, _plain(inner)) for key, inner in value.items()]
    return sorted(value) if isinstance(value, frozenset) else value


def _module_parts(module: Module) -> Iterator[bytes | memoryview]:
    constants = stored_constants(module)
    references = {key: Reference("", key) for key in constants.tensors}
    yield referring_text(module, constants, references).encode()
    yield repr(module.labels).encode()  # layers are called after nodes
    for key, (dtype, array) in constants.tensors.items():
        yield f"{key} {dtype} {array.shape}".encode()
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _calibration_parts(calibration: Calibration | None) -> Iterator[bytes | memoryview]:
    if calibration is None:
        return
    runs = [calibration] if isinstance(calibration, Mapping) else calibration
    yield repr((isinstance(calibration, Mapping), len(runs))).encode()
    for run in runs:
        for name, given in run.items():
            array = np.asarray(given)
            yield f"{name} {array.dtype} {array.shape}".encode()
            yield array.tobytes()
