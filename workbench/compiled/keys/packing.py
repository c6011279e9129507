"""Packing: of eight adjacent values, those that belong to one receiver move to the front, in their order.

Processors with AVX-512 do that in one instruction. Up to eight places are written whatever the number of chosen values,
so that no branch depends on it; what is written after the chosen values is meaningless.

The cache on disk does not track this file: if you change it, also change the kernels that use it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.core.registry import cpu_target
from numba.extending import intrinsic

AT_ONCE = 8
"""Values that are packed together, whatever their width; one bit of a byte per value says whether it is chosen."""

_BYTE, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_FLAGS = ir.VectorType(ir.IntType(1), AT_ONCE)
_LANES = ir.VectorType(_I32, AT_ONCE)


@cache
def packs_at_once() -> bool:
    """Whether the processor that kernels are compiled for packs values in one instruction.

    Numba knows, because it may compile for another one (NUMBA_CPU_NAME, NUMBA_CPU_FEATURES).
    """
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return {"+avx512f", "+avx512vl"} <= set(features.split(","))


@intrinsic  # type: ignore[untyped-decorator]
def equal(context: Any, address: Any, value: Any) -> Any:
    """A byte whose bit i says whether the i-th of the eight integers at an address has this value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integers = ir.VectorType(_I64, AT_ONCE)
        found = builder.load(builder.inttoptr(args[0], integers.as_pointer()), align=8)
        first = builder.insert_element(ir.Constant(integers, ir.Undefined), args[1], _I32(0))
        wanted = builder.shuffle_vector(first, ir.Constant(integers, ir.Undefined), ir.Constant(_LANES, [0] * AT_ONCE))
        return builder.bitcast(builder.icmp_signed("==", found, wanted), _BYTE)

    return types.uint8(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def count_bits(context: Any, byte: Any) -> Any:
    """The number of bits of a byte that are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.ctpop(args[0]), _I64)

    return types.int64(types.uint8), generate


def _compress(builder: Any, given: Any, chosen: Any, width: int) -> Any:
    """The chosen values of eight, at the front of a register.

    Narrow values are widened to 32 bits, because not every processor with AVX-512 can compress narrow values. The
    register is stored afterwards: on Zen 4, compressing to memory in one instruction takes dozens of cycles.
    """
    wide = ir.VectorType(ir.IntType(8 * max(width, 4)), AT_ONCE)
    name = f"llvm.x86.avx512.mask.compress.v{AT_ONCE}i{wide.element.width}"
    compress = get_or_insert_function(builder.module, ir.FunctionType(wide, [wide, wide, _FLAGS]), name)
    values = given if given.type == wide else builder.zext(given, wide)
    packed = builder.call(compress, [values, ir.Constant(wide, None), builder.bitcast(chosen, _FLAGS)])
    return packed if given.type == wide else builder.trunc(packed, given.type)


def _packing(width: int) -> Any:
    value = ir.IntType(8 * width)
    values = ir.VectorType(value, AT_ONCE)

    def pack(context: Any, source: Any, chosen: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source, chosen, place = args
            given = builder.load(builder.inttoptr(source, values.as_pointer()), align=width)
            if packs_at_once():
                packed = _compress(builder, given, chosen, width)
                builder.store(packed, builder.inttoptr(place, values.as_pointer()), align=width)
                return context.get_dummy_value()
            for lane in range(AT_ONCE):  # the next value overwrites this one unless it is chosen
                builder.store(builder.extract_element(given, _I32(lane)), builder.inttoptr(place, value.as_pointer()))
                bit = builder.and_(builder.lshr(chosen, _BYTE(lane)), _BYTE(1))
                place = builder.add(place, builder.mul(builder.zext(bit, _I64), _I64(width)))
            return context.get_dummy_value()

        return types.void(types.int64, types.uint8, types.int64), generate

    return intrinsic(pack)


pack_8, pack_16, pack_32, pack_64 = _packing(1), _packing(2), _packing(4), _packing(8)
