"""Every primitive by its name: the opcodes of NEM, and `core.NAME` for the ops of Core IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from nacre.kernels.core_ops import CORE_OPS
from nacre.kernels.elementwise.elementwise import ELEMENTWISE
from nacre.kernels.elementwise.graph_elementwise import GRAPH_ELEMENTWISE
from nacre.kernels.interface.call import Primitive
from nacre.kernels.movement.graph_data import GRAPH_DATA
from nacre.kernels.movement.resize import GRAPH_RESIZE
from nacre.kernels.movement.scatter import GRAPH_SCATTER
from nacre.kernels.movement.views import VIEWS
from nacre.kernels.numbers.conversion import CONVERSION
from nacre.kernels.numbers.quantization import through_reals
from nacre.kernels.products.graph_linear import GRAPH_LINEAR
from nacre.kernels.products.linear import LINEAR
from nacre.kernels.quantised.graph_quantized import GRAPH_QUANTIZED
from nacre.kernels.reductions.graph_normalization import GRAPH_NORMALIZATION
from nacre.kernels.reductions.graph_reductions import GRAPH_REDUCTIONS
from nacre.kernels.reductions.normalization import NORMALIZATION
from nacre.kernels.reductions.reductions import REDUCTIONS
from nacre.kernels.windows.convolution import CONVOLUTION
from nacre.kernels.windows.graph_convolution import GRAPH_CONVOLUTION
from nacre.kernels.windows.graph_pooling import GRAPH_POOLING
from nacre.kernels.windows.pooling import POOLING

_ROWS = (
    *LINEAR,
    *CONVOLUTION,
    *ELEMENTWISE,
    *POOLING,
    *VIEWS,
    *REDUCTIONS,
    # Softmax and norms have no meaning in integers but the real values that `quant` gives them.
    *(replace(row, bind=through_reals(row.bind)) for row in NORMALIZATION),
    *CONVERSION,
    *CORE_OPS,
    *GRAPH_ELEMENTWISE,
    *GRAPH_REDUCTIONS,
    *GRAPH_NORMALIZATION,
    *GRAPH_LINEAR,
    *GRAPH_CONVOLUTION,
    *GRAPH_POOLING,
    *GRAPH_DATA,
    *GRAPH_SCATTER,
    *GRAPH_RESIZE,
    *GRAPH_QUANTIZED,
)

PRIMITIVES: Mapping[str, Primitive] = MappingProxyType({row.name: row for row in _ROWS})
