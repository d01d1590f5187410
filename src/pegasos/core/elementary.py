"""exp, log, tanh, powers, log(1 + e) that compiled loops can vectorise, as with libm's they do not.

exp has the precision of x: within 3e-7 of the value in float32 and 1e-15 in float64, for results
that are neither denormal nor within a factor of 2 of overflow. Below it is 0 (in float32 the
smallest normal number), above infinity; NaN stays NaN. The compiled forms are in
`core.llvm_elementary`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import helper


def exponential(x: Any) -> Any:
    """exp(x)"""
    return np.exp(x)


def logarithm(x: Any) -> Any:
    """log(x) of a positive normal number, within 1e-15 of the value; not of 0, inf or NaN"""
    return np.log(x)


def tangent(x: Any) -> Any:
    """tanh(x)"""
    return np.tanh(x)


MAX_POWER = 31


def power(x: Any, degree: int) -> Any:
    """x^degree, for degrees up to MAX_POWER"""
    return x**degree


@helper
def log1p_unit(e):
    """log(1 + e) for e in [-1/2, 1]: the series of 2 atanh(e / (2 + e))."""
    s = e / (2.0 + e)
    u = s * s
    v = u * u
    w = v * v
    p0 = (1.0 + u * (1 / 3)) + (1 / 5 + u * (1 / 7)) * v
    p1 = (1 / 9 + u * (1 / 11)) + (1 / 13 + u * (1 / 15)) * v
    p2 = (1 / 17 + u * (1 / 19)) + (1 / 21 + u * (1 / 23)) * v
    p3 = (1 / 25 + u * (1 / 27)) + (1 / 29 + u * (1 / 31)) * v
    return 2.0 * s * ((p0 + p1 * w) + (p2 + p3 * w) * (w * w))
