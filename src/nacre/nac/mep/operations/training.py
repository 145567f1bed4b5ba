"""Training: steps down gradients, and weights that are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.core.values import Array
from nacre.nac.format.values import ConstantValue
from nacre.nac.mep.budget import CALL_STEPS
from nacre.nac.mep.operations.models import CalleeError, loaded_model, model_inputs, nac_model
from nacre.nac.mep.operations.registry import performs
from nacre.nac.mep.values import Fault, Value, array, one_number, text
from nacre.nac.mep.work import LoadedModel, Work
from nacre.nac.rules.plans import NAC91

if TYPE_CHECKING:
    from nacre.nac.training.trainer import Trainer

_PASSES = 3  # of a step of training: there, back, and the weights


@performs("model_train_step")
def model_train_step(
    work: Work,
    model: int,
    loss: str,
    values: Sequence[Value],
    targets: Sequence[Value],
    rate: Value,
    logits_out: bool,
    weight: ConstantValue,
    bias: ConstantValue,
) -> tuple[Value, ...]:
    """The loss, and the first output where somebody asks for it."""
    loaded, trainer = _trainer(work, model)
    given = model_inputs(loaded, values)
    wanted = [array(target, f"target {place}") for place, target in enumerate(targets)]
    names = [_name(one) for one in (weight, bias)]
    chosen = [name for name in names if name]
    speed = one_number(rate, "the rate")
    work.budget.charge(steps=_PASSES * CALL_STEPS)
    try:
        outputs: list[Array] = trainer.run(given) if logits_out else []
        value = trainer.step(given, wanted, float(speed), loss=loss, parameters=chosen or None)
    except InputError as error:
        raise CalleeError(f"{backquote(loaded.name)} cannot be trained", error) from None
    work.models[model] = replace(loaded, run=trainer.run)
    work.blocks.pop(model, None)  # of the weights before
    return (value, *outputs[:1])


def _name(given: ConstantValue) -> str:
    """The name of a parameter; none where it is empty or null."""
    if given is None:
        return ""
    if not isinstance(given, str):
        raise Fault(NAC91, f"the name of a parameter is {given!r}, expected a text")
    return given


def _trainer(work: Work, model: int) -> tuple[LoadedModel, Trainer]:
    source = nac_model(work, model, "trained")
    if model not in work.trainers:
        # Imported where a plan needs it: gradients are a large part of the package.
        from nacre.nac.training.trainer import Trainer

        work.trainers[model] = Trainer(source)
    return loaded_model(work, model), work.trainers[model]


@performs("model_zero_grad")
def model_zero_grad(work: Work, model: int) -> None:
    """Nothing is kept from step to step."""
    loaded_model(work, model)


@performs("model_save_weights")
def model_save_weights(work: Work, model: int, path: Value, type: str) -> None:
    """A file of the model as it is now."""
    from nacre.nac.format.file import to_bytes
    from nacre.nac.quantise.apply import quantise

    loaded, trainer = _trainer(work, model)
    work.budget.charge(steps=CALL_STEPS)
    try:
        made = trainer.model()
        if type != "none":
            made, _ = quantise(made, type)
    except InputError as error:
        raise CalleeError(f"{backquote(loaded.name)} cannot be written", error) from None
    content = to_bytes(made.file)
    work.budget.take(len(content))
    work.surroundings.folder.write(text(path, "the path"), content, work.budget, append=False)
