"""Training of a file's model: steps down the gradient of a loss, by its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.core.builder import dtype_name
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import Module, TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.nac.format.values import NacFile, Tensor
from nacre.nac.program.assembly import tensor_of
from nacre.nac.program.lift import lift_literally
from nacre.nac.program.trainable import fixed_constants
from nacre.nac.rules.running import NAC55
from nacre.nac.run.inputs import check_inputs
from nacre.nac.run.model import NacModel, model_of
from nacre.nac.training.module import open_parameters, training_module
from nacre.nac.training.optimiser_state import moments_of, state_arrays
from nacre.nac.training.optimisers import Moments, Optimiser
from nacre.nac.training.replacement import with_tensors
from nacre.nac.training.requests import (
    names_of,
    optimiser_of,
    rate_of,
    require_finite,
    require_loss,
    require_weights,
    smoothing_of,
    targets_of,
)

_PART = "train parameters behind it: `parameters=[..]`"
_CHOOSE = "name what to change: `parameters=[..]`; `Trainer.weights` has all floats by their names"


class _Step(Struct, frozen=True, eq=False):
    """A step made ready for inputs and targets of certain types."""

    session: CoreSession
    inputs: Mapping[str, str]  # of parameters, by their names
    targets: tuple[str, ...]  # inputs for targets


class Trainer:
    """A model whose weights change. It keeps them in f32, whatever the file stores them as.

    `step` goes down the gradient once, as the optimiser does: `sgd`, `adam`, `adamw`, or one of
    `nac.SGD`, `nac.Adam`, `nac.AdamW` with settings of its own. `run` computes outputs, and `model`
    gives the model with the weights as they are. InputError names what has no gradient.
    """

    def __init__(self, model: NacModel, optimiser: str | Optimiser = "sgd") -> None:
        if not isinstance(model, NacModel):
            message = (
                f"found a {type(model).__name__}, expected what `nac.load` or `nac.build` give"
            )
            raise InputError([NAC55.at(whole_file("<trainer>"), message)])
        self._model = model
        with _refusals(model):
            self._optimiser = optimiser_of(optimiser)
        self._moments: dict[str, Moments | None] = {}  # of gradients, by parameters
        self._modules: dict[object, Module] = {}
        self._runs: dict[object, tuple[CoreSession, Mapping[str, str]]] = {}
        self._steps: dict[object, _Step] = {}
        self._stored: Mapping[str, Array] = {}  # what weights were in the file
        self._weights: dict[str, Array] = {}  # by name, once the types of inputs are known
        self._fixed: frozenset[str] = frozenset()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the model's inputs."""
        return tuple(one.name for one in self._model.inputs)

    @property
    def weights(self) -> dict[str, Array]:
        """All floats by name, as they are now; arrays that are put in are used from then on.

        InputError where the types of inputs are not known yet: the file does not say them, and
        there was no run.
        """
        if not self._weights:
            with _refusals(self._model):
                self._module({})
        return self._weights

    @weights.setter
    def weights(self, given: Mapping[str, Array]) -> None:
        given = dict(given)  # which may be what is cleared, as in `trainer.weights |= ..`
        self.weights.clear()
        self._weights.update(given)

    @property
    def optimiser_state(self) -> dict[str, Array]:
        """What the optimiser remembers, as arrays by name: with `model`, all of a training.

        A trainer of that model, to which they are given, goes on as if nothing had been between.
        InputError where they are of another model or optimiser.
        """
        return state_arrays(self._moments)

    @optimiser_state.setter
    def optimiser_state(self, given: Mapping[str, Array]) -> None:
        weights = self.weights
        with _refusals(self._model):
            self._moments = moments_of(given, weights, self._optimiser)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what a step changes unless it is given others; InputError as `weights`."""
        return tuple(name for name in self.weights if name not in self._fixed)

    def step(
        self,
        inputs: Mapping[str, Any],
        targets: Sequence[Any],
        rate: float,
        *,
        loss: str = "cross_entropy",
        label_smoothing: float = 0.0,
        parameters: Sequence[str] | None = None,
    ) -> float:
        """Change parameters by the gradient times a rate; the loss before.

        Without names those that are parameters of the model: not its buffers, the statistics of
        its batch norms or numbers of its source. With names these, whatever they are.

        Targets belong to the first outputs. `loss` is `cross_entropy`, of scores [.., classes] and
        the numbers of the right classes, or one of `mse`, `l1` and `bce_with_logits`, of floats.
        """
        given = self._arrays(inputs)
        with _refusals(self._model):
            require_loss(loss)
            speed = float(rate_of(rate))
            smoothing = smoothing_of(label_smoothing, loss)
            module = self._module(given)
            require_weights(self._weights, self._stored)
            wanted = targets_of(module, targets, loss)
            trained = self._parameters_to_train(parameters)
            step = self._step_session(module, (loss, smoothing), given, wanted, trained)
        values = {step.inputs[name]: array for name, array in self._weights.items()}
        values |= dict(zip(step.targets, wanted, strict=True))
        before, *found = step.session.run({**given, **values})
        gradients = dict(zip(trained, found, strict=True))
        with _refusals(self._model):
            require_finite(gradients)
        for name, gradient in gradients.items():
            self._weights[name], self._moments[name] = self._optimiser.update(
                self._weights[name], gradient, speed, self._moments.get(name)
            )
        return float(before)

    def run(self, inputs: Mapping[str, Any]) -> list[Array]:
        """The outputs of the model with the weights as they are."""
        given = self._arrays(inputs)
        key = _types_key(given)
        with _refusals(self._model):
            if key not in self._runs:
                opened = open_parameters(self._module(given))
                self._runs[key] = CoreSession(opened.module), opened.inputs
            require_weights(self._weights, self._stored)
        session, names = self._runs[key]
        values = {names[name]: array for name, array in self._weights.items()}
        return list(session.run({**given, **values}))

    def model(self) -> NacModel:
        """The model with the weights as they are, which are f32 where they have changed.

        Where the file is quantised, all are.
        """
        names = self._model.surroundings.parameters
        is_quantised = bool(self._model.file.header.quant)
        given: dict[tuple[int, str], Tensor] = {}
        with _refusals(self._model):
            require_weights(self._weights, self._stored)
        changed = [name for name, was in self._stored.items() if self._weights[name] is not was]
        for name in self._weights if is_quantised else sorted(changed):
            id_ = names.ids[name]
            given[id_, name] = tensor_of(id_, np.asarray(self._weights[name], order="C"))
        made = with_tensors(self._model, given)
        if is_quantised and not any(tensor.quant for tensor in made.file.data.tensors):
            header = replace(made.file.header, quant=0)
            made = model_of(NacFile(header, made.file.sections, made.file.gaps))
        return made

    def _arrays(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Inputs by name; InputError has all that is wrong with them, as before any run."""
        names = {one.instruction: one.name for one in self._model.all_inputs}
        checked = check_inputs(self._model, inputs)
        return {names[instruction]: array for instruction, array in checked.items()}

    def _module(self, given: Mapping[str, Array]) -> Module:
        """The module for inputs of these types; the first decides what there is to train."""
        key = _types_key(given)
        if key not in self._modules:
            types = {
                name: TensorType(dtype_name(array.dtype), array.shape)
                for name, array in given.items()
            }
            self._modules[key] = module = lift_literally(self._model, types)
            if not self._weights:
                self._stored = open_parameters(module).weights
                self._weights = dict(self._stored)
                fixed, names = fixed_constants(module), module.parameter_names
                self._fixed = frozenset(names[value][0] for value in fixed if value in names)
        return self._modules[key]

    def _parameters_to_train(self, parameters: Sequence[str] | None) -> tuple[str, ...]:
        """The parameters to train; Unsupported where one is asked for that is not there."""
        if parameters is None:
            if not self._weights or not self.parameters:
                raise Unsupported("the model has no parameters of floats", _CHOOSE)
            return self.parameters
        return names_of(parameters, self._weights)

    def _step_session(
        self,
        module: Module,
        loss: tuple[str, float],  # with its smoothing
        given: Mapping[str, Array],
        targets: Sequence[Array],
        trained: tuple[str, ...],
    ) -> _Step:
        key = (loss, _types_key(given), tuple((t.dtype, t.shape) for t in targets), trained)
        if key not in self._steps:
            types = [TensorType(dtype_name(t.dtype), t.shape) for t in targets]
            try:
                opened, names = training_module(module, loss[0], types, trained, loss[1])
            except InputError as error:  # operations without a gradient
                raise self._untrainable(error) from None
            self._steps[key] = _Step(CoreSession(opened.module), opened.inputs, names)
        return self._steps[key]

    def _untrainable(self, error: InputError) -> InputError:
        """What says so about a module, about the model."""
        place = whole_file(self._model.source.name)
        return InputError([NAC55.at(place, one.message, help=_PART) for one in error.diagnostics])


@contextmanager
def _refusals(model: NacModel) -> Iterator[None]:
    """InputError for what cannot be trained."""
    try:
        yield
    except Unsupported as problem:
        place = whole_file(model.source.name)
        raise InputError([NAC55.at(place, problem.reason, help=problem.help)]) from None


def _types_key(given: Mapping[str, Array]) -> object:
    return tuple((name, array.dtype, array.shape) for name, array in sorted(given.items()))
