"""Explicit feature maps: what makes the linear path nonlinear."""
