"""Solvers in processes and environments of their own, all behind one protocol.

An adapter is a module with two functions, and imports its package only inside `fit`:

- `ways(loss, eps)`: ways to use the package for a loss, each a list of settings (dictionaries)
  from loose to tight; no ways if it does not know the loss.
- `fit(X, y, C, loss, setting)`: the w that it finds for 1/2 ||w||^2 + C * sum of losses without
  intercept. The whole call is timed, conversions included.
"""
