"""Stop rules, public: for the parameter `stop` of the estimators."""

from pegasos.solvers.stops import Displacement, Validation, Window

__all__ = ["Displacement", "Validation", "Window"]
