"""`choose_threshold`, for every classifier whose `predict` goes by a threshold on scores."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from pegasos.estimators import parameters as par
from pegasos.model.threshold import Choice, choose, target_of


class Thresholds:
    """For classifiers with `decision_function`, whose `predict` goes by `threshold_`."""

    threshold_: float = 0.0

    def choose_threshold(
        self, X, y, *, precision=None, recall=None, cost=None, sample_weight=None
    ) -> Choice:
        """Choose the score above which `predict` tells the second class, on rows kept aside.

        Exactly one target: `precision=0.9` finds the highest recall with at least this precision,
        `recall=0.9` the highest precision with at least this recall, `cost` the lowest sum. From
        then on `predict` follows the threshold, and no longer the larger of two probabilities.
        `fit` and `partial_fit`, which change the scores, set it back to 0.

        Parameters
        ----------
        X, y
            Rows that the model has not learnt from, and their classes.
        precision, recall : float, default=None
            Of `classes_[1]`, above 0 and at most 1.
        cost : dict of (true class, predicted class) to a number, default=None
            What a row costs; pairs that are not there cost nothing.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        Choice
            `threshold` (also kept in `threshold_`), and `precision`, `recall` and `cost` on X.
        """
        check_is_fitted(self)
        classes = self.classes_  # type: ignore[attr-defined]
        if len(classes) != 2:
            raise ValueError(f"a threshold is for two classes, this model has {len(classes)}")
        target = target_of(precision, recall, cost, classes)
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, classes)
        if unknown.size:
            raise ValueError(f"y: class {par.shown(unknown[0])} is not one of the model's")
        scores = self.decision_function(X)  # type: ignore[attr-defined]
        weight = _check_sample_weight(sample_weight, scores, ensure_non_negative=True)
        found = choose(scores, y == classes[1], weight, target)
        self.threshold_ = found.threshold
        return found
