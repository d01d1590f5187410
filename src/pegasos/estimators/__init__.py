"""Estimators: scikit-learn parameters in, a problem solved, a certified model out."""
