"""Models and tokenizers: what a plan calls. Their failures become findings with a place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.core.values import Array
from nacre.nac.format.values import ConstantValue
from nacre.nac.mep.budget import CALL_STEPS
from nacre.nac.mep.operations.registry import performs
from nacre.nac.mep.values import (
    Fault,
    TokenizerValue,
    Value,
    array,
    brief_error,
    describe,
    ids_of,
    is_number,
    numbers,
    text,
    unfit_fault,
    value_from,
    whole_number,
)
from nacre.nac.mep.work import LoadedModel, Model, Work
from nacre.nac.rules.plans import NAC87, NAC90, NAC91, NAC94, NAC97

if TYPE_CHECKING:
    from nacre.nac.run.model import NacModel

_SUFFIX = ".nac"
_TOKEN_IDS = ("token_id", "token_to_id")  # as tokenizers call it: ours, and others


class CalleeError(Exception):
    """A model or tokenizer refused, with findings of its own."""

    def __init__(self, message: str, said: InputError) -> None:
        super().__init__(message)
        self.message = message
        self.said = said


@performs("res_load_model")
def res_load_model(work: Work, model: int, name: str) -> None:
    """A model that the caller has given, or a file in the folder."""
    work.budget.charge(steps=CALL_STEPS)
    loaded = work.surroundings.models.get(name)
    if loaded is None:
        loaded = _from_file(work, name)
    try:
        run = _runner(loaded, work.seed)
        inputs = tuple(str(getattr(one, "name", one)) for one in loaded.inputs)
    except Exception as error:
        raise Fault(NAC97, f"model {backquote(name)} failed: {brief_error(error)}") from None
    work.forget_model(model)
    work.models[model] = LoadedModel(name, run, inputs, loaded)


def _runner(model: Model, seed: int) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """What runs a model: a session where it has such; ours draws from the machine's seed."""
    from nacre.nac.run.model import NacModel

    if isinstance(model, NacModel):
        return model.session(seed=seed).run
    run: Callable[[Mapping[str, Any]], Sequence[Any]]
    run = (model.session() if hasattr(model, "session") else model).run
    return run


def _from_file(work: Work, name: str) -> Model:
    view, title = _model_file(work, name)
    # Imported where a plan needs it: running models loads all of their kernels.
    from nacre.nac.run.model import load

    try:
        return load(view, name=title)
    except InputError as error:
        raise CalleeError(f"model {backquote(name)} cannot be loaded", error) from None


def _model_file(work: Work, name: str) -> tuple[memoryview, str]:
    """A model's file and its path; its name may stand in a plan without the suffix."""
    folder, names = work.surroundings.folder, [name]
    if not name.endswith(_SUFFIX):
        names.append(name + _SUFFIX)
    faults = []
    for one in names:
        try:
            return folder.view(one), folder.name_of(one)
        except Fault as fault:
            faults.append(fault)
    known = ", ".join(backquote(one) for one in list(work.surroundings.models)[:10])
    looked = f"looked for {' and '.join(map(backquote, names))} in the folder"
    help_ = faults[0].help or (f"{looked}; given are {known}" if known else looked)
    said = faults[0].message
    message = f"the caller has given no model {backquote(name)}, and as a file: {said}"
    raise Fault(NAC94, message, help_)


@performs("res_unload", "model")
def unload_model(work: Work, model: int) -> None:
    """Forget a model."""
    loaded_model(work, model)
    work.forget_model(model)


def loaded_model(work: Work, model: int) -> LoadedModel:
    """A model by its number; Fault where the plan has not loaded it."""
    loaded = work.models.get(model)
    if loaded is None:
        raise Fault(NAC90, f"there is no model {model}")
    return loaded


def nac_model(work: Work, model: int, purpose: str) -> NacModel:
    """The same where only a NAC file will do."""
    # Imported where a plan needs it: running models loads all of their kernels.
    from nacre.nac.run.model import NacModel

    loaded = loaded_model(work, model)
    if not isinstance(loaded.source, NacModel):
        raise Fault(NAC87, f"{backquote(loaded.name)} is no NAC model, and cannot be {purpose}")
    return loaded.source


@performs("model_run_static")
def model_run_static(
    work: Work, model: int, values: Sequence[Value], outs: int
) -> tuple[Value, ...]:
    """The first outputs of a model."""
    loaded = loaded_model(work, model)
    given = model_inputs(loaded, values)
    work.budget.charge(steps=CALL_STEPS)
    results = _call(backquote(loaded.name), loaded.run, given)
    if not isinstance(results, list | tuple):
        name = type(results).__name__
        raise Fault(NAC97, f"{backquote(loaded.name)} gave a {name}, expected a list of arrays")
    if len(results) < outs:
        message = f"{backquote(loaded.name)} gives {len(results)} outputs, {outs} are taken"
        raise Fault(NAC91, message)
    return tuple(
        _output(one, f"output {place} of {backquote(loaded.name)}")
        for place, one in enumerate(results[:outs])
    )


def model_inputs(loaded: LoadedModel, values: Sequence[Value]) -> dict[str, Array]:
    """Arrays by the names of a model's inputs."""
    if len(values) != len(loaded.inputs):
        names = ", ".join(backquote(one) for one in loaded.inputs)
        message = f"{backquote(loaded.name)} takes {len(loaded.inputs)} inputs ({names})"
        raise Fault(NAC91, f"{message}, {len(values)} are given")
    return {
        name: array(value, f"input {backquote(name)}")
        for name, value in zip(loaded.inputs, values, strict=True)
    }


def _output(given: object, what: str) -> Value:
    value = value_from(given, what, NAC97)
    if not isinstance(value, np.ndarray) and not is_number(value):
        raise Fault(NAC97, f"{what} is {describe(value)}, expected an array")
    return value


def _call(what: str, function: Callable[..., Any], *given: object) -> Any:  # noqa: ANN401
    """What something of the caller's returns; its failure becomes a finding."""
    try:
        return function(*given)
    except InputError as error:
        raise CalleeError(f"{what} refuses", error) from None
    except Exception as error:
        raise Fault(NAC97, f"{what} failed: {brief_error(error)}") from None


# Tokenizers


@performs("res_load_extern")
def res_load_extern(work: Work, type: str, id: ConstantValue) -> Value:
    """The tokenizer of a model, or the constant itself."""
    if type == "constant":
        return id
    number = whole_number(id, "the number of a model", 0, 255)
    loaded_model(work, number)
    tokenizers = work.surroundings.tokenizers
    if isinstance(tokenizers, Mapping):
        tokenizers = tokenizers.get(number)
    if tokenizers is None:
        message = f"the caller has given no tokenizer for model {number}"
        raise Fault(NAC90, message, "give the machine a `tokenizer`")
    return TokenizerValue(tokenizers)


def _tokenizer(value: Value) -> Any:  # noqa: ANN401 - whatever the caller has given
    if not isinstance(value, TokenizerValue):
        raise unfit_fault("the tokenizer", value, "a tokenizer")
    return value.tokenizer


@performs("preproc_encode")
def preproc_encode(work: Work, tokenizer: Value, text: Value) -> tuple[int, ...]:
    """The ids of a text."""
    return _encode(work, tokenizer, text)


def _encode(work: Work, tokenizer: Value, words: Value) -> tuple[int, ...]:
    callee, given = _tokenizer(tokenizer), text(words, "the text")
    work.budget.take(64 * len(given))
    return ids_of(_call("the tokenizer", callee.encode, given), "the tokenizer", NAC97)


@performs("preproc_decode")
def preproc_decode(work: Work, tokenizer: Value, ids: Value) -> str:
    """The text of ids."""
    callee, given = _tokenizer(tokenizer), numbers(ids, "the ids").reshape(-1)
    if given.dtype.kind not in "iu":
        raise unfit_fault("the ids", given, "whole numbers")
    work.budget.take(64 * given.size)
    decoded = _call("the tokenizer", callee.decode, [int(one) for one in given])
    if not isinstance(decoded, str):
        raise Fault(NAC97, f"the tokenizer gave a {type(decoded).__name__}, expected a text")
    return decoded


@performs("preproc_get_id")
def preproc_get_id(work: Work, tokenizer: Value, token: str) -> int:
    """The id of a token: as the tokenizer says, or what the token alone is encoded to."""
    callee = _tokenizer(tokenizer)
    named = next((name for name in _TOKEN_IDS if hasattr(callee, name)), None)
    if named is None:
        ids = _encode(work, tokenizer, token)
        if len(ids) != 1:
            raise Fault(NAC97, f"{backquote(token)} is {len(ids)} ids, expected one")
        return ids[0]
    token_id = _call("the tokenizer", getattr(callee, named), token)
    if not isinstance(token_id, int | np.integer):
        raise Fault(NAC97, f"the tokenizer has no token {backquote(token)}")
    value = value_from(int(token_id), "the id", NAC97)
    assert isinstance(value, int), describe(value)
    return value
