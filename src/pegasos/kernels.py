"""Kernels, public: the shipped ones, their algebra, and what makes one of your own."""

from pegasos.objective.kernel_check import KernelCheck, check_kernel
from pegasos.objective.kernels import (
    Exp,
    Function,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Shifted,
    Sigmoid,
    Sum,
    exp,
    kernel,
    of_distance,
    of_products,
)

__all__ = [
    "Exp",
    "Function",
    "Gaussian",
    "KernelCheck",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Shifted",
    "Sigmoid",
    "Sum",
    "check_kernel",
    "exp",
    "kernel",
    "of_distance",
    "of_products",
]
