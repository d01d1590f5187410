"""exp, tanh and powers that compiled loops can vectorise, in the precision of x.

exp is within 3e-7 of the value in float32 and 1e-15 in float64, for results that are neither
denormal nor within a factor of 2 of overflow; below it is the smallest normal number, above
infinity; NaN stays NaN. The compiled forms are in `core.llvm`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def exponential(x: Any) -> Any:
    """exp(x)"""
    return np.exp(x)


def tangent(x: Any) -> Any:
    """tanh(x)"""
    return np.tanh(x)


MAX_POWER = 31


def power(x: Any, degree: int) -> Any:
    """x^degree, for degrees up to MAX_POWER"""
    return x**degree
