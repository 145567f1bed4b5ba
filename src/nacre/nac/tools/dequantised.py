"""Weights as the program computes with them: what quantisation has packed is unpacked."""

from __future__ import annotations

from msgspec.structs import replace

from nacre.core.builder import dtype_name
from nacre.nac.format.values import Data, NacFile, Tensor
from nacre.nac.run.model import NacModel, model_of
from nacre.nac.run.weights import Weights
from nacre.nac.spec.elements import DTYPE_CODES


def dequantise_model(model: NacModel) -> NacModel:
    """The same program without quantisation, its weights in its file; it computes the same."""
    tensors = tuple(dequantised_tensor(id_, model.weights) for id_ in model.weights.names)
    data = Data(model.file.data.parameters, model.file.data.inputs, tensors)
    header = replace(model.file.header, quant=0, is_internal=True)
    file = NacFile(header, {**model.file.sections, "DATA": data}, model.file.gaps)
    return model_of(file, model.source)


def dequantised_tensor(id_: int, weights: Weights) -> Tensor:
    """A parameter with its elements as kernels take them."""
    array = weights[id_]
    little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.isbuiltin == 1 else array
    return Tensor(id_, DTYPE_CODES[dtype_name(array.dtype)], array.shape, little.tobytes())
