"""Two mailboxes and one kind of spam: what a related model is worth beside a few own labels.

The messages are those of 20 Newsgroups, the spam is misc.forsale. The first reader has a PC and a
car, the second a Mac and a motorcycle; each row of misc.forsale is in one of the two mailboxes. The
first has labelled all of them, the second n, half of them spam. Beside it stands a source that is
far off: cars and electronics (rec against sci) for one who reads of sports and medicine. Errors are
those on the second reader's part of the published test rows, for (squared hinge loss, penalised
intercept)

    own          1/2 ||w||^2 + C sum of own losses
    source       w0, the model of the first mailbox
    pooled       1/2 ||w||^2 + C0 (p sum of losses of the first mailbox + q sum of own losses), the
                 larger of p and q is 1: from w0 over all rows alike to own rows alone
    transferred  1/2 ||w - w0||^2 + C sum of own losses

C0 of w0 is chosen on the first mailbox. Each other model has one number to choose among nine, C or
q/p, by the errors on own rows in the same stratified cross-validation (five folds, or as many as
there are rows of a class); of equal ones it takes the smallest. Test rows choose nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import StratifiedKFold

from benchmarks.datasets import FOLDER
from benchmarks.table import HERE, into_page, markdown, save

TO_FIRST = 0.45  # of the messages of groups that both have
LABELS, DRAWS = (4, 8, 16, 32, 64, 128, 256, 512), 20
GRID = np.logspace(-3.0, 1.0, 9)  # of C; rows are told apart at the end of it
RATIOS = np.logspace(-3.0, 3.0, 9)
MODELS = ("own", "source", "pooled", "transferred")


class Task(NamedTuple):
    """Numbers of the groups of -1 and of +1 (the spam) in the first and the second mailbox."""

    title: str
    first: tuple[tuple[int, ...], tuple[int, ...]]
    second: tuple[tuple[int, ...], tuple[int, ...]]


TASKS = {
    "spam": Task(
        "the same kind of spam",
        ((3, 7), (6,)),  # comp.sys.ibm.pc.hardware, rec.autos; misc.forsale
        ((4, 8), (6,)),  # comp.sys.mac.hardware, rec.motorcycles; misc.forsale
    ),
    "far": Task(
        "a source that is far off",
        ((7, 8), (11, 12)),  # rec.autos, rec.motorcycles; sci.crypt, sci.electronics
        ((9, 10), (13, 14)),  # rec.sport.baseball, rec.sport.hockey; sci.med, sci.space
    ),
}


class Rows(NamedTuple):
    """Rows and labels, +1 for spam."""

    X: sp.csr_matrix
    y: np.ndarray

    def take(self, rows: np.ndarray) -> Rows:
        return Rows(self.X[rows], self.y[rows])


class Mailboxes(NamedTuple):
    """The first reader's rows; the second's, from which labels are drawn, and those to judge by."""

    first: Rows
    second: Rows
    test: Rows


def mailboxes(task: Task) -> Mailboxes:
    """As sublinear TF-IDF, weighted by the frequencies in the published training rows."""
    parts = []
    for part in ("train", "test"):
        path = FOLDER / f"20news_bydate.{part}.npz"
        parts.append((sp.load_npz(path).tocsr(), np.load(path)["y"]))
    scale = TfidfTransformer(sublinear_tf=True).fit(parts[0][0])
    (X, group), (X_test, group_test) = ((scale.transform(X), group) for X, group in parts)
    first, second = (set(sum(box, ())) for box in (task.first, task.second))
    spam = sum((box[1] for box in (task.first, task.second)), ())
    both = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(group, [*first & second])))
    cut = round(TO_FIRST * len(both))

    def box(X, group, shared, others) -> Rows:
        rows = np.concatenate([shared, np.flatnonzero(np.isin(group, [*others]))])
        X = sp.csr_matrix(X[rows]).astype(np.float32)
        return Rows(X, np.where(np.isin(group[rows], spam), 1, -1))

    return Mailboxes(
        box(X, group, both[:cut], first - second),
        box(X, group, both[cut:], second - first),
        box(X_test, group_test, np.arange(0), second),
    )


def drawn(rows: Rows, n: int, seed: int) -> Rows:
    """n rows, half of them spam."""
    rng = np.random.default_rng([n, seed])
    each = [rng.permutation(np.flatnonzero(rows.y == sign))[: n // 2] for sign in (1, -1)]
    return rows.take(np.concatenate(each))


def machine(**settings: Any) -> Any:
    from pegasos import LinearSVC

    return LinearSVC(intercept="penalised", random_state=0, **settings)


def source_of(first: Rows) -> Any:
    """w0, with the C of the fewest errors in five folds."""
    C0 = machine().cross_validate_path(*first, GRID, cv=5).best_C
    return machine(C=C0).fit(*first)


def errors(boxes: Mailboxes, source: Any, n: int, seed: int) -> dict[str, float]:
    """The error of each model with n labels."""
    own = drawn(boxes.second, n, seed)
    folds = StratifiedKFold(min(5, n // 2), shuffle=True, random_state=seed)
    splits = list(folds.split(*own))
    found = {
        "own": _chosen(machine(), own, splits),
        "source": source,
        "pooled": _pooled(boxes.first, own, splits, source.C),
        "transferred": _chosen(machine(center=source), own, splits),
    }
    return {name: 1.0 - model.score(*boxes.test) for name, model in found.items()}


def _chosen(model: Any, own: Rows, splits: list) -> Any:
    """The model with the C of the fewest errors."""
    C = model.cross_validate_path(*own, GRID, cv=splits).best_C
    return model.set_params(C=C).fit(*own)


def _pooled(first: Rows, own: Rows, splits: list, C0: float) -> Any:
    """Rows of both mailboxes; those of the first are in every fold to learn from."""
    m, n = len(first.y), len(own.y)
    both = Rows(sp.vstack([first.X, own.X]).tocsr(), np.concatenate([first.y, own.y]))
    cv = [(np.concatenate([np.arange(m), m + train]), m + test) for train, test in splits]
    model = machine(C=C0)

    def weights(ratio: float) -> np.ndarray:
        return np.repeat([min(1.0, 1.0 / ratio), min(1.0, ratio)], [m, n])

    scores = [
        model.cross_validate_path(*both, [C0], cv, None, weights(ratio)).mean_test_score[0]
        for ratio in RATIOS
    ]
    return model.fit(*both, weights(RATIOS[int(np.argmax(scores))]))


def run() -> None:
    rows = []
    for name, task in TASKS.items():
        boxes = mailboxes(task)
        source = source_of(boxes.first)
        for n in LABELS:
            each = [errors(boxes, source, n, seed) for seed in range(DRAWS)]
            row = {"task": name, "labels": n} | {m: [e[m] for e in each] for m in MODELS}
            rows.append(row)
            print(name, n, {m: round(float(np.mean(row[m])), 4) for m in MODELS}, flush=True)
    report(rows)


def report(rows: list[dict]) -> None:
    """The tables, the block of the guide, and the figure."""
    tasks = {name: [row for row in rows if row["task"] == name] for name in TASKS}
    text = [f"Mean error over {DRAWS} draws of own labels."]
    text += [f"With {TASKS[name].title}: {_verdict(some)}" for name, some in tasks.items()]
    blocks = []
    for said, some in zip(text[1:], tasks.values(), strict=True):
        shown = [{"own labels": row["labels"]} | _percent(row) for row in some]
        blocks += [said, markdown(shown)]
    save("transfer", text, rows, [__doc__ or ""])
    into_page("docs/guide/transfer.md", "transfer", blocks)
    _draw(tasks)


def _percent(row: dict) -> dict[str, str]:
    """Means and standard deviations."""
    return {
        name: f"{100 * np.mean(row[name]):.2f} ± {100 * np.std(row[name], ddof=1):.2f}"
        for name in MODELS
    }


def _verdict(rows: list[dict]) -> str:
    means = [{name: float(np.mean(row[name])) for name in MODELS} for row in rows]
    others = [min(mean[name] for name in MODELS[:-1]) for mean in means]
    ratio = [mean["transferred"] / other for mean, other in zip(means, others, strict=True)]
    best = sum(r <= 1.0 for r in ratio)
    return (
        f"the transferred model is at or below the best of the other three at {best} of "
        f"{len(rows)} sizes; its error is {min(ratio):.2f} to {max(ratio):.2f} times the least of "
        "theirs."
    )


def _draw(tasks: dict[str, list[dict]]) -> None:
    """A panel for each task."""
    from pegasos.report.figures import LARGE, new_figure
    from pegasos.report.figures import save as save_figure

    figure = new_figure(11.5, 5.2, "A few labels and a related model: error of a spam filter")
    panels = figure.subplots(1, len(tasks))
    for axes, (name, rows) in zip(panels, tasks.items(), strict=True):
        _draw_panel(axes, rows)
        axes.set_title(TASKS[name].title, loc="left", fontsize=LARGE)
    panels[0].set_ylabel(f"test error, mean and spread of {DRAWS} draws")
    panels[0].legend(frameon=False, fontsize=LARGE - 1)
    save_figure(figure, HERE.parent / "docs" / "images" / "transfer.png")


def _draw_panel(axes: Any, rows: list[dict]) -> None:
    """Means as lines, one standard deviation as bands."""
    from pegasos.report.figures import COLOURS, FAINT, GRID

    labels = [row["labels"] for row in rows]
    for name, colour in zip(MODELS, (COLOURS[4], FAINT, COLOURS[0], COLOURS[1]), strict=True):
        mean = np.array([np.mean(row[name]) for row in rows])
        spread = np.array([np.std(row[name], ddof=1) for row in rows])
        wide = 2.8 if name == "transferred" else 1.8
        axes.plot(labels, 100 * mean, "o-", color=colour, linewidth=wide, ms=4.5, label=name)
        band = 100 * np.maximum(mean - spread, 1e-3), 100 * (mean + spread)
        axes.fill_between(labels, *band, color=colour, alpha=0.13, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(labels, [str(n) for n in labels])
    ticks = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30)
    axes.set_yticks(ticks, [f"{tick} %" for tick in ticks])
    axes.minorticks_off()
    means = [100 * np.mean(row[name]) for row in rows for name in MODELS]
    axes.set_ylim(0.8 * min(means), 1.4 * max(means))
    axes.set_xlabel("own labels")
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
