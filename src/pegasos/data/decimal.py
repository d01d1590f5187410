"""Decimal text to the nearest float64, in hot loops.

A number m * 10^e with an integer m below 2^53 and |e| <= 22 is one exact product or quotient.
Beyond, the product of m with a 128-bit approximation of 5^e decides the rounding nearly always;
where it does not (about one number in 10^18, and subnormal ones) the caller asks Python's float().

Eisel and Lemire: Lemire, Number parsing at a gigabyte per second, Software 2021, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from pegasos.core.dispatch import helper

_LOWEST, _HIGHEST = -342, 308  # decimal exponents beyond which nothing is a finite float64
_U = np.uint64
_EXACT = _U(1 << 53)
_HALF = _U(0xFFFFFFFF)
_ALL = _U(0xFFFFFFFFFFFFFFFF)


def _five_to(q: int) -> int:
    """The leading 128 bits of 5^q; for negative q one more in the last place than its quotient."""
    p = 5 ** abs(q)
    if q >= 0:
        return p << (128 - p.bit_length()) if p.bit_length() <= 128 else p >> p.bit_length() - 128
    bits = (p - 1).bit_length()
    inverse = (1 << (bits + 127 if q >= -27 else 2 * bits + 128)) // p + 1
    return inverse >> inverse.bit_length() - 128


_POWERS = [_five_to(q) for q in range(_LOWEST, _HIGHEST + 1)]
_TEN = np.array([10.0**k for k in range(23)])
_UPPER = np.array([p >> 64 for p in _POWERS], dtype=np.uint64)
_LOWER = np.array([p & int(_ALL) for p in _POWERS], dtype=np.uint64)


@helper
def nearest(m, e):
    """The float64 nearest to m * 10^e, or NaN if only exact arithmetic can tell."""
    if m == _U(0):
        return 0.0
    if m < _EXACT and -22 <= e <= 22:
        if e < 0:
            return np.float64(m) / _TEN[-e]
        return np.float64(m) * _TEN[e]
    if e < _LOWEST or e > _HIGHEST:
        return np.nan
    return _rounded(m, e)


@helper
def _rounded(m, e):
    """m * 10^e by one or two 64 x 64 bit products; NaN where they do not settle it."""
    zeros = _leading_zeros(m)
    m = m << _U(zeros)
    at = e - _LOWEST
    high, low = _product(m, _UPPER[at])
    if high & _U(0x1FF) == _U(0x1FF):  # the bits below the mantissa could carry: look further
        more, _ = _product(m, _LOWER[at])
        low = low + more
        if low < more:
            high = high + _U(1)
    if low == _ALL and (e < -27 or e > 55):
        return np.nan
    top = high >> _U(63)
    mantissa = high >> (top + _U(9))
    exponent = ((217706 * e) >> 16) + 63 + np.int64(top) - zeros + 1023
    if exponent <= 0 or exponent >= 2046:
        return np.nan  # subnormal, or near the largest
    halfway = mantissa & _U(3) == _U(1) and mantissa << (top + _U(9)) == high
    if low <= _U(1) and -4 <= e <= 23 and halfway:
        mantissa = mantissa & ~_U(1)  # ties to even
    mantissa = (mantissa + (mantissa & _U(1))) >> _U(1)
    if mantissa >= _U(1 << 53):
        mantissa = _U(1 << 52)
        exponent += 1
    return _scaled(mantissa, exponent)


@helper
def _scaled(mantissa, exponent):
    """mantissa * 2^(exponent - 1075), exactly."""
    return np.ldexp(np.float64(mantissa), np.int32(exponent - 1075))


@helper
def _leading_zeros(m):
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if m >> _U(64 - step) == _U(0):
            m = m << _U(step)
            zeros += step
    return zeros


@helper
def _product(a, b):
    """The upper and the lower 64 bits of a * b."""
    thirty_two = _U(32)
    a0, a1, b0, b1 = a & _HALF, a >> thirty_two, b & _HALF, b >> thirty_two
    low, cross = a0 * b0, a1 * b0
    middle = (low >> thirty_two) + (cross & _HALF) + a0 * b1
    high = a1 * b1 + (cross >> thirty_two) + (middle >> thirty_two)
    return high, (middle << thirty_two) | (low & _HALF)
