"""Kill training and saving at random instants: `python tests/kill.py 300`, or learning from a
stream: `python tests/kill.py online 200`.

So many kills must find a checkpoint; those that come before the first one are counted beside.

Not part of the ordinary tests. Each training writes a checkpoint after every step and is killed by
SIGKILL again and again until it ends; its model file must have the same bytes as that of a
training that was left alone. Each saving is killed while two models take turns at one name; the
file must be one of the two.
"""

import contextlib
import io
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from pegasos import LinearSVC, load_model, save_model
from pegasos.cli import batches
from pegasos.cli.main import app
from pegasos.data.samples import load_sample
from pegasos.data.writers import write_svmlight

COMMON = ["--loss", "hinge", "--checkpoint-every", "0", "--no-cache", "--max-iter", "100000"]
SETTINGS = [
    [*COMMON, "--solver", "dual", "--tol", "1e-5"],
    [*COMMON, "--solver", "dual", "--tol", "1e-4", "--intercept", "none"],
    [*COMMON, "--solver", "newton", "--tol", "1e-9", "-C", "30"],
    [*COMMON, "--solver", "auto", "--tol", "1e-7"],
]
_ONLINE = ["--online", "--checkpoint-every", "0", "--classes", "0,1,2"]
STREAMS = [
    [*_ONLINE, "--lam", "1e-3"],
    [*_ONLINE, "--lam", "1e-4", "--balanced", "--loss", "logistic"],
    [*_ONLINE, "--features", "60", "--intercept", "penalised", "--loss", "pinball"],
    [*_ONLINE, "--map", "nystroem", "--components", "30"],
]
STREAM_BLOCK = 1 << 15  # bytes: some fifty batches


def forked(work) -> int:
    """The process that runs `work()` quietly."""
    pid = os.fork()
    if pid:
        return pid
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    code = 1
    try:
        work()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        os._exit(code)


def killed_after(pid: int, seconds: float) -> bool:
    """Kill a process after some time; False if it had ended well by then."""
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, f"exit code {os.WEXITSTATUS(status)}"
    return False


def train(folder: Path, name: str, settings: list[str]) -> list[str]:
    checkpoint = str(folder / f"{name}.checkpoint")
    model = str(folder / f"{name}.model")
    data = str(folder / ("stream.svm" if "--online" in settings else "data.svm"))
    return ["train", data, "-m", model, "--checkpoint", checkpoint, *settings]


def write_data(folder: Path) -> None:
    X, y = load_sample("pima")
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    write_svmlight(folder / "data.svm", X, y)


def write_stream(folder: Path) -> None:
    """E-mails in random order, of three kinds; some columns appear late."""
    X, y = load_sample("spambase")
    rows = np.random.default_rng(0).permutation(len(y))
    X, y = X[rows] / (1.0 + X[rows]), (y + (X[:, 20] > 0))[rows]
    X[: len(y) // 2, 40:] = 0.0
    write_svmlight(folder / "stream.svm", X.astype(np.float32), y.astype(np.int64))


def kill_training(
    folder: Path, trials: int, rng: random.Random, every: list[list[str]] = SETTINGS
) -> None:
    """Until so many kills have found a checkpoint."""
    whole, spans = {}, {}
    for k, settings in enumerate(every):
        quiet = io.StringIO()
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            with contextlib.suppress(SystemExit):  # loads the loops: children begin at once
                app(train(folder, "first", settings))
        start = time.perf_counter()
        pid = forked(lambda k=k, s=settings: app(train(folder, f"whole{k}", s)))
        assert os.waitpid(pid, 0)[1] == 0
        spans[k] = time.perf_counter() - start
        whole[k] = (folder / f"whole{k}.model").read_bytes()
    kills, resumed = 0, 0
    while resumed < trials:
        k = rng.randrange(len(every))
        args = train(folder, "some", every[k])
        (folder / "some.model").unlink(missing_ok=True)
        while True:
            pid = forked(lambda args=args: app(args))
            if not killed_after(pid, rng.uniform(0.0, spans[k])):
                break
            kills += 1
            resumed += (folder / "some.checkpoint").exists()
        assert (folder / "some.model").read_bytes() == whole[k], every[k]
        assert not (folder / "some.checkpoint").exists()
        if sys.stdout.isatty():
            print(f"\rtraining: {kills} kills, {resumed} resumes", end="", flush=True)
    left = [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]
    print(f"\rtraining: {kills} kills, {resumed} resumes, every model has the same bytes, ", end="")
    print(f"{len(left)} temporary files left by kills")


def kill_saving(folder: Path, trials: int, rng: random.Random) -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 4000)), np.arange(60) % 2
    models = [LinearSVC(C=C, random_state=0).fit(X, y) for C in (0.1, 10.0)]
    contents = []
    file = folder / "turns.model"
    for model in models:
        save_model(model, file)
        contents.append(file.read_bytes())

    def take_turns() -> None:
        while True:
            for model in models:
                save_model(model, file)

    for _ in range(trials):
        killed_after(forked(take_turns), rng.uniform(0.0, 0.05))
        assert file.read_bytes() in contents
        load_model(file)
    print(f"saving: {trials} kills, the file always whole")


def main() -> None:
    online, numbers = sys.argv[1:2] == ["online"], [a for a in sys.argv[1:] if a != "online"]
    trials, seed = int((numbers or ["300"])[0]), int((numbers[1:] or ["0"])[0])
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), random.Random(seed)
        if online:
            batches.BLOCK = STREAM_BLOCK
            write_stream(folder)
            kill_training(folder, trials, rng, STREAMS)
            return
        write_data(folder)
        kill_training(folder, trials, rng)
        kill_saving(folder, trials, random.Random(seed))


if __name__ == "__main__":
    main()
