"""Losses, public: the shipped ones and the verbs with which to write your own."""

from pegasos.core.dispatch import helper
from pegasos.objective.losses import (
    Hinge,
    Logistic,
    Perceptron,
    Pinball,
    SquaredHinge,
    conjugate,
    curvature,
    dual_step,
    rise,
    slope,
    value,
)

__all__ = [
    "Hinge",
    "Logistic",
    "Perceptron",
    "Pinball",
    "SquaredHinge",
    "conjugate",
    "curvature",
    "dual_step",
    "helper",
    "rise",
    "slope",
    "value",
]
