"""Words that every reader of version 1 knows, so that files need not spell them.

Their numbers are part of the format: none is moved, taken away or added.
"""

from __future__ import annotations

from typing import Final

_LIST = """
DDR L2 L1 L1[0] L1[1] L1[2] L1[3] stream transfer store raw saturated i4 i8 i16 i32 u8 u16 u32 f16
bf16 f32 NMU CSTL DMA VPU sDMA WDM CSTLA CSTLB ideal gemm matmul conv1d conv2d conv3d
depthwise_conv2d add sub mul div max min abs neg pow exp log sqrt relu leaky_relu clamp sigmoid
tanh silu gelu softmax log_softmax layernorm rmsnorm maxpool avgpool reduce_sum reduce_max
reduce_min argmax argmin cast quantize dequantize transpose reshape slice split concat pad gather
accum_type saturate axis axes pads strides dilations groups kernel_shape keepdims epsilon alpha
approximate none min_val max_val perm target_shape starts ends steps split_sizes mode
constant_value rounding l1.banks l1.bank_width l1.interleave l1.ports l2.slices l2.slice_width
l2.interleave l2.ports dma.burst dma.burst_cycles dma.align dma.dims dma.outstanding tags.engine
tags.device queue.depth chain.links chain.depth cstl.parts store.formats wdm.modes
wdm.palette_entries wdm.palette_tables wdm.rate arbitration.classes arbitration.rule oldest
round_robin
"""
WORDS: Final = tuple(_LIST.split())
NUMBERS: Final = {word: number for number, word in enumerate(WORDS)}
