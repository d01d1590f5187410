"""Solvers: each a frozen dataclass with init(problem, seed) and step(problem, state)."""
