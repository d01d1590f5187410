"""The compiled forms of `core.elementary`: plain arithmetic on numbers and their bits.

Imported by `core.jit` at the first call of a hot loop, never before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload, register_jitable

from pegasos.core.elementary import exponential, logarithm, power, tangent


@intrinsic
def _bits(typing_context: Any, number: Any) -> Any:
    """The bits of a float as an integer of its size, or of an integer as a float."""
    pairs: dict[Any, Any] = {
        types.int32: (types.float32, ir.FloatType()),
        types.int64: (types.float64, ir.DoubleType()),
        types.float64: (types.int64, ir.IntType(64)),
    }
    result, kind = pairs[number]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], kind)

    return result(number), generate


_f32, _f64, _i32, _i64 = np.float32, np.float64, np.int32, np.int64


@register_jitable(fastmath={"contract"})
def _exp32(x):
    """Cephes' expf: x = k log 2 + f, then a polynomial in f; np.floor vectorises."""
    x = _f32(-87.0) if x < _f32(-87.0) else x
    x = _f32(89.0) if x > _f32(89.0) else x
    k = np.floor(x * _f32(1.44269504088896341) + _f32(0.5))
    f = x - k * _f32(0.693359375) - k * _f32(-2.12194440e-4)
    p = _f32(1.9875691500e-4)
    p = p * f + _f32(1.3981999507e-3)
    p = p * f + _f32(8.3334519073e-3)
    p = p * f + _f32(4.1665795894e-2)
    p = p * f + _f32(1.6666665459e-1)
    p = p * f + _f32(5.0000001201e-1)
    return (p * f * f + f + _f32(1.0)) * _bits(_i32((_i32(k) + _i32(127)) << _i32(23)))


@register_jitable(fastmath={"contract"})
def _exp64(x):
    """Cephes' exp; k becomes an integer by adding 1.5 2^52, for which there is an instruction."""
    far = x < -708.0
    x = -708.0 if far else x
    x = 710.0 if x > 710.0 else x
    k = np.floor(x * 1.4426950408889634074 + 0.5)
    f = x - k * 6.93145751953125e-1 - k * 1.42860682030941723212e-6
    g = f * f
    p = (1.26177193074810590878e-4 * g + 3.02994407707441961300e-2) * g
    p = (p + 9.99999999999999999910e-1) * f
    q = (3.00198505138664455042e-6 * g + 2.52448340349684104192e-3) * g
    q = (q + 2.27265548208155028766e-1) * g + 2.0
    power = _bits((_bits(k + 6755399441055744.0) + _i64(1023)) << _i64(52))
    return 0.0 if far else (1.0 + 2.0 * (p / (q - p))) * power


@overload(exponential, strict=False, jit_options={"fastmath": {"contract"}})
def _overload_exponential(x: Any) -> Any:
    if x == types.float32:
        return lambda x: _exp32(x)
    return lambda x: _exp64(_f64(x))


_u64 = np.uint64
_ROOT = _u64(0x3FE6A09E00000000)  # bits of about sqrt(1/2)
_WHOLE = _u64(0x4338000000000000)  # bits of 1.5 2^52, which takes an integer in its last ones


@register_jitable(fastmath={"contract"})
def _log64(x):
    """x = 2^k m with m between sqrt(1/2) and sqrt(2), then the series of 2 atanh((m-1)/(m+1))."""
    shifted = _u64(_bits(x)) + (_u64(0x3FF0000000000000) - _ROOT)
    k = _bits(_i64((shifted >> _u64(52)) + _WHOLE)) - (6755399441055744.0 + 1023.0)
    f = _bits(_i64((shifted & _u64(0x000FFFFFFFFFFFFF)) + _ROOT)) - 1.0
    s = f / (2.0 + f)
    u = s * s
    v = u * u
    low = (1 / 3 + u * (1 / 5)) + (1 / 7 + u * (1 / 9)) * v
    high = (1 / 11 + u * (1 / 13)) + (1 / 15 + u * (1 / 17)) * v
    p = u * (low + v * v * (high + v * v * (1 / 19 + u * (1 / 21))))
    return k * 6.93145751953125e-1 + (k * 1.42860682030941723212e-6 + 2.0 * (s + s * p))


@overload(logarithm, strict=False, jit_options={"fastmath": {"contract"}})
def _overload_logarithm(x: Any) -> Any:
    return lambda x: _log64(_f64(x))


@register_jitable(fastmath={"contract"})
def _tanh32(x):
    e = _exp32(-abs(x + x))
    return np.copysign((_f32(1.0) - e) / (_f32(1.0) + e), x)


@register_jitable(fastmath={"contract"})
def _tanh64(x):
    e = _exp64(-abs(x + x))
    return np.copysign((1.0 - e) / (1.0 + e), x)


@overload(tangent, strict=False, jit_options={"fastmath": {"contract"}})
def _overload_tangent(x: Any) -> Any:
    if x == types.float32:
        return lambda x: _tanh32(x)
    return lambda x: _tanh64(_f64(x))


@overload(power, strict=False)
def _overload_power(x: Any, degree: Any) -> Any:
    one = _f32(1.0) if x == types.float32 else _f64(1.0)

    def squared(x, degree):
        """Without a loop, so that a loop around it vectorises."""
        y = x * x
        z = y * y
        u = z * z
        v = u * u
        low = (x if degree & 1 else one) * (y if degree & 2 else one)
        return (
            low
            * (z if degree & 4 else one)
            * (u if degree & 8 else one)
            * (v if degree & 16 else one)
        )

    return squared
