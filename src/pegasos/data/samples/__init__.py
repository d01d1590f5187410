"""Small real data sets that ship with the package; see README.md for their sources and licences."""

from importlib.resources import files

import numpy as np

NAMES = ("pima", "spambase")


def load_sample(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Load a data set that ships with the package.

    Parameters
    ----------
    name : {"pima", "spambase"}
        pima: 768 patients, 8 measurements, 1 = diabetes.
        spambase: 4601 e-mails, 57 frequencies and lengths, 1 = spam.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float32
        Raw, unscaled measurements.
    y : ndarray of shape (n_samples,), int8
        Labels 0 and 1.
    """
    if name not in NAMES:
        raise ValueError(f"no sample is named {name!r}; the samples are {', '.join(NAMES)}")
    with (files(__name__) / f"{name}.npz").open("rb") as stream, np.load(stream) as arrays:
        return arrays["X"], arrays["y"]
