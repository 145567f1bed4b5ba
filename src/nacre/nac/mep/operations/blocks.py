"""Blocks of a model's OPS: a plan sets what they take, runs them, and gets what they gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.nac.mep.budget import CALL_STEPS
from nacre.nac.mep.operations.models import CalleeError, loaded_model, nac_model
from nacre.nac.mep.operations.registry import performs
from nacre.nac.mep.values import Fault, Value, array, value_from
from nacre.nac.mep.work import Work
from nacre.nac.rules.plans import NAC91, NAC97

if TYPE_CHECKING:
    from nacre.nac.run.block_run import BlockRun


@performs("block_set")
def block_set(work: Work, model: int, instruction: int, value: Value) -> None:
    """An array in the place of what an instruction gives."""
    run = _block_run(work, model)
    given = array(value, f"the value of instruction {instruction}").copy()  # slots may be written
    work.budget.take(given.nbytes)
    _call(work, model, lambda: run.set_result(instruction, given))


@performs("block_run")
def block_run(work: Work, model: int, first: int, last: int) -> None:
    """A block, in the order of its instructions."""
    run = _block_run(work, model)
    work.budget.charge(steps=CALL_STEPS)
    _call(work, model, lambda: run.run(first, last))


@performs("block_get")
def block_get(work: Work, model: int, instruction: int) -> Value:
    """What an instruction gave: a tensor or a number."""
    run = _block_run(work, model)
    result = _call(work, model, lambda: run.result(instruction))
    if isinstance(result, list):
        message = f"instruction {instruction} gives {len(result)} results, expected one tensor"
        raise Fault(NAC91, message, "get the `getitem` behind it that takes the wanted one")
    if isinstance(result, np.ndarray):
        work.budget.take(result.nbytes)
    return value_from(result, f"the result of instruction {instruction}", NAC97)


def _block_run(work: Work, model: int) -> BlockRun:
    """The run of a model by blocks, with the weights that training has left."""
    source = nac_model(work, model, "run by blocks")
    if model not in work.blocks:
        from nacre.nac.run.block_run import BlockRun

        trainer = work.trainers.get(model)
        program = source if trainer is None else trainer.model()
        work.blocks[model] = _call(work, model, lambda: BlockRun(program, work.seed))
    found: BlockRun = work.blocks[model]
    return found


def _call(work: Work, model: int, function: Callable[[], Any]) -> Any:  # noqa: ANN401
    from nacre.nac.run.block_run import BlockError

    name = backquote(loaded_model(work, model).name)
    try:
        return function()
    except BlockError as error:
        raise Fault(NAC91, f"{name}: {error}") from None
    except InputError as error:
        raise CalleeError(f"{name} refuses", error) from None
