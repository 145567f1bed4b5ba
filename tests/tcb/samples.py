"""An image that has something of everything, as text and as a value."""

from __future__ import annotations

from msgspec.structs import replace

from nacre.base.source import Source
from nacre.tcb.image import Image
from nacre.tcb.text.assembly import assemble

TEXT = """\
tcb 1
image conv source "conv.nem"
machine npm4k
    hash "3f" uarch lab uarch_hash "a0" engines 2 units (CSTL=1, NMU=1) device_units (DMA=2)
    memories (DDR=1048576, L1=65536, L2=262144) tokens 16 tags 32 device_tags 64
    figures (l1.banks=8, arbitration.rule="round_robin")

place X DDR:0x0 size 4096
place tiles L1[0]:0x400 size 8192

port input X DDR:0x0 size 4096 elem i8 dims [64, 64]
port output Y DDR:0x1000 size 64

stream e0 {
  task @3 transfer in DDR:0x2000 u8[64] out L1[0]:0x2400 u8[64] on DMA 20+4 shared 4 signal e0.t0
  join @4 wait e0.t0>=1 set e0.t1=2, e0.t2=0 count 2
  repeat @4 count 8 {
    task @5 transfer  # load at line 12, conv_1
        in DDR:0x0 + c0*64 i8[64] out L1[0]:0x400 + (c0 mod 2)*4096 i8[64] on DMA 20+4 shared 4
        wait e0.t1>=c0 + 1 signal e0.t(c0 mod 2 + 2)
    task @6 relu(alpha=0.5, axis=1, is_fast=true, mode="up", pads=[0, 1])  # relu at line 13
        ordered in L1[0]:0x400 + (c0 mod 2)*4096 i8[64] quant [0.5] zero [0], _
        out stream:0x0 f16[64] on CSTL 4+64 instance 0 part CSTLA chained
        wait e0.t(c0 mod 2 + 2)>=(c0/2)*2 + 1
    task @7 store
        in stream:0x0 f16[64]
        out L1[0]:0x480 + (c0 mod 2)*4096 i8[64] quant [0.25, 0.5] zero [0, 0] axis 0 group 32
        on CSTL 4+64 part CSTLB format i8 burst 64 priority 1 signal e0.t(c0 mod 2 + 2) token
        names [5]
    join @8 wait e0.t(c0 mod 2 + 2)>=(c0/2)*2 + 2, e0.t1>=c0 + 2 signal e0.t1
  }
  join @8 wait e0.t1>=10 signal d.t0
}

stream d {
  wait @9 wait d.t0>=1 signal d.t1
  task @10 transfer
      in L1[0]:0x480 i8[64] strides [1] out DDR:0x1000 i8[64] on DMA 20+4 engine 0 wait d.t1>=1
  task @11 relu
      in DDR:0x3000 i8[64] packed palette bits 4 tables 2, DDR:0x4000 i8[64] packed sparse
      out DDR:0x1000 i8[64]
}

constant DDR:0x2000 data "AAECAwQFBgc="

origin @5 load line 12 layer "conv_1"
origin @6 relu line 13
"""


def sample() -> Image:
    """The image of the text."""
    return assemble(Source("sample.tcbs", TEXT)).image


def sample_with_host_values() -> Image:
    """The sample, with values of its host at a port."""
    image = sample()
    first = replace(image.ports[0], host_elem="f32", scales=(0.25,), zero_points=(-3,))
    return replace(image, ports=(first, *image.ports[1:]))
