"""Lengths of steps: functions of an array of step numbers t = 1, 2, … and of lam."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def pegasos_steps(t: np.ndarray, lam: float) -> np.ndarray:
    """eta_t = 1 / (lam t)"""
    return 1.0 / (lam * t)


@dataclass(frozen=True)
class Constant:
    """eta_t = eta0"""

    eta0: float = 0.01

    def __call__(self, t: np.ndarray, lam: float) -> np.ndarray:
        return np.full(len(t), self.eta0)


@dataclass(frozen=True)
class InverseRoot:
    """eta_t = eta0 / sqrt(t)"""

    eta0: float = 1.0

    def __call__(self, t: np.ndarray, lam: float) -> np.ndarray:
        return self.eta0 / np.sqrt(t)
