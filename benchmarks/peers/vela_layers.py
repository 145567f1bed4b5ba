"""Cycles of single layers by Vela, for an Ethos-U55 of 256 MACs: run with a Python that has it."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ethosu.vela.tflite import (
    Buffer,
    BuiltinOperator,
    BuiltinOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    Model,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SubGraph,
    Tensor,
    TensorType,
)

ACCELERATOR = "ethos-u55-256"
VALID = 1  # padding: none
VERSION = 3  # of the file format


class _Writer:
    """A network of one layer as a TensorFlow Lite file."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1 << 20)
        self.buffers = [self._buffer(b"")]
        self.tensors: list[int] = []

    def _buffer(self, data: bytes) -> int:
        content = self.builder.CreateByteVector(data) if data else None
        Buffer.Start(self.builder)
        if content is not None:
            Buffer.AddData(self.builder, content)
        return int(Buffer.End(self.builder))

    def _numbers(self, values: Sequence[int | float], dtype: str) -> int:
        return int(self.builder.CreateNumpyVector(np.array(values, dtype)))

    def _offsets(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def tensor(self, name: str, shape: Sequence[int], values: np.ndarray[Any, Any] | None) -> int:
        """A tensor of 8 bits, or a bias of 32; its place."""
        is_bias = name == "bias"
        place = 0
        if values is not None:
            place = len(self.buffers)
            self.buffers.append(self._buffer(values.tobytes()))
        scale, zero = self._numbers([0.01], "<f4"), self._numbers([0], "<i8")
        QuantizationParameters.Start(self.builder)
        QuantizationParameters.AddScale(self.builder, scale)
        QuantizationParameters.AddZeroPoint(self.builder, zero)
        quantization = QuantizationParameters.End(self.builder)
        text, dims = self.builder.CreateString(name), self._numbers(shape, "<i4")
        Tensor.Start(self.builder)
        Tensor.AddShape(self.builder, dims)
        kinds = TensorType.TensorType
        Tensor.AddType(self.builder, kinds.INT32 if is_bias else kinds.INT8)
        Tensor.AddBuffer(self.builder, place)
        Tensor.AddName(self.builder, text)
        Tensor.AddQuantization(self.builder, quantization)
        self.tensors.append(Tensor.End(self.builder))
        return len(self.tensors) - 1

    def options(self, stride: int, is_depthwise: bool) -> int:
        """Attributes of the convolution."""
        kind = DepthwiseConv2DOptions if is_depthwise else Conv2DOptions
        kind.Start(self.builder)
        kind.AddPadding(self.builder, VALID)
        kind.AddStrideW(self.builder, stride)
        kind.AddStrideH(self.builder, stride)
        if is_depthwise:
            kind.AddDepthMultiplier(self.builder, 1)
        return int(kind.End(self.builder))

    def operator(self, options: int, is_depthwise: bool) -> int:
        """The convolution of tensors 0 to 2 into 3."""
        inputs, outputs = self._numbers([0, 1, 2], "<i4"), self._numbers([3], "<i4")
        kinds = BuiltinOptions.BuiltinOptions
        kind = kinds.DepthwiseConv2DOptions if is_depthwise else kinds.Conv2DOptions
        Operator.Start(self.builder)
        Operator.AddOpcodeIndex(self.builder, 0)
        Operator.AddInputs(self.builder, inputs)
        Operator.AddOutputs(self.builder, outputs)
        Operator.AddBuiltinOptionsType(self.builder, kind)
        Operator.AddBuiltinOptions(self.builder, options)
        return int(Operator.End(self.builder))

    def file(self, operator: int, is_depthwise: bool) -> bytes:
        """All of it."""
        builder, kinds = self.builder, BuiltinOperator.BuiltinOperator
        code = kinds.DEPTHWISE_CONV_2D if is_depthwise else kinds.CONV_2D
        OperatorCode.Start(builder)
        OperatorCode.AddDeprecatedBuiltinCode(builder, code)
        OperatorCode.AddVersion(builder, VERSION)
        OperatorCode.AddBuiltinCode(builder, code)
        codes = self._offsets([OperatorCode.End(builder)])
        tensors, operators = self._offsets(self.tensors), self._offsets([operator])
        inputs, outputs = self._numbers([0], "<i4"), self._numbers([3], "<i4")
        SubGraph.Start(builder)
        SubGraph.AddTensors(builder, tensors)
        SubGraph.AddInputs(builder, inputs)
        SubGraph.AddOutputs(builder, outputs)
        SubGraph.AddOperators(builder, operators)
        graphs, buffers = self._offsets([SubGraph.End(builder)]), self._offsets(self.buffers)
        Model.Start(builder)
        Model.AddVersion(builder, VERSION)
        Model.AddOperatorCodes(builder, codes)
        Model.AddSubgraphs(builder, graphs)
        Model.AddBuffers(builder, buffers)
        builder.Finish(Model.End(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())


def network_file(layer: dict[str, Any]) -> bytes:
    """A layer as a network."""
    rng = np.random.default_rng(0)
    kernel, depth, channels = layer["kernel"], layer["in_c"], layer["out_c"]
    is_depthwise = layer["depthwise"]
    height = (layer["out_h"] - 1) * layer["stride"] + kernel
    width = (layer["out_w"] - 1) * layer["stride"] + kernel
    shape = [1, kernel, kernel, channels] if is_depthwise else [channels, kernel, kernel, depth]
    writer = _Writer()
    writer.tensor("input", [1, height, width, depth], None)
    writer.tensor("weights", shape, rng.integers(-127, 128, shape).astype(np.int8))
    writer.tensor("bias", [channels], np.zeros(channels, np.int32))
    writer.tensor("output", [1, layer["out_h"], layer["out_w"], channels], None)
    options = writer.options(layer["stride"], is_depthwise)
    return writer.file(writer.operator(options, is_depthwise), is_depthwise)


def cycles_of(layer: dict[str, Any], folder: Path) -> dict[str, float]:
    """Cycles of the NPU and of all, as Vela writes them for each layer."""
    path = folder / "layer.tflite"
    path.write_bytes(network_file(layer))
    vela = [sys.executable, "-m", "ethosu.vela", str(path), "--output-dir", str(folder)]
    more = ["--accelerator-config", ACCELERATOR, "--verbose-performance"]
    done = subprocess.run([*vela, *more], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    file = next(folder.glob("*per-layer.csv"))
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines, skipinitialspace=True))
    os.unlink(file)
    npu = sum(float(row["NPU"]) for row in rows)
    return {"cycles": npu, "with memory": sum(float(row["Op Cycles"]) for row in rows)}


def main() -> None:
    layers = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        found = {layer["name"]: cycles_of(layer, Path(folder)) for layer in layers}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
