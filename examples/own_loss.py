"""A loss of your own: the hinge with its corner rounded off over a width gamma.

l(z) = 0                       z >= 1
       (1 - z)^2 / (2 gamma)   between
       1 - z - gamma / 2       z <= 1 - gamma
"""

from typing import NamedTuple

from pegasos.losses import conjugate, dual_step, slope, value


class SmoothedHinge(NamedTuple):
    gamma: float


@value.register(SmoothedHinge)
def _(loss, z):
    h = max(0.0, 1.0 - z)
    return 0.5 * h * h / loss.gamma if h < loss.gamma else h - 0.5 * loss.gamma


@slope.register(SmoothedHinge)
def _(loss, z):
    return -min(1.0, max(0.0, (1.0 - z) / loss.gamma))


@conjugate.register(SmoothedHinge)
def _(loss, a):
    return a * (0.5 * loss.gamma * a - 1.0)


@dual_step.register(SmoothedHinge)
def _(loss, alpha, z, q, c):
    bend = loss.gamma / c
    return min(max(alpha + (1.0 - z - bend * alpha) / (q + bend), 0.0), c)


def main() -> None:
    from sklearn.preprocessing import StandardScaler

    from pegasos import LinearSVC
    from pegasos.data.samples import load_sample

    X, y = load_sample("spambase")
    X = StandardScaler().fit_transform(X)
    for solver in ("dual", "newton"):
        model = LinearSVC(loss=SmoothedHinge(0.5), solver=solver, random_state=0).fit(X, y)
        primal, dual = model.certificate_
        gap = model.certificate_.relative_gap
        print(f"{solver:6}  {dual:.3f} <= best possible <= {primal:.3f}   gap {gap:.1e}")


if __name__ == "__main__":
    main()
