import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.synthetic_study import write_study
from gramian.report import Options, build
from tests.representation.analyses import write_report

HOSTILE = "<script>alert(1)</script>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMIUM_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def small_study(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    generator = np.random.default_rng(0)
    return write_study(folder, games=["Alien", "Pong", "Seaquest"], episodes=150, metric_rows=20, generator=generator)


@pytest.fixture(scope="session")
def small_report(small_study, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("small-report")
    build(small_study, out, Options(replicates=100, title="A small study"))
    return out


@pytest.fixture(scope="session")
def analyzed_report(small_study, tmp_path_factory) -> Path:
    """The small study with an analysis of two of its games beside it."""
    folder = tmp_path_factory.mktemp("analyzed")
    shutil.copytree(small_study, folder / "study")
    arms = ("dqn", "decor:10.24", "gram:10.24")
    write_report(folder / "study" / "analysis", games=("Alien", "Pong"), arms=arms, value=0.5)
    build(folder / "study", folder / "report", Options(replicates=100))
    return folder / "report"


@pytest.fixture(scope="session")
def kappa_report(tmp_path_factory) -> Path:
    """Two penalties, centred and not, at four κ."""
    folder = tmp_path_factory.mktemp("kappa")
    kappas = ("0.1", "1.0", "10.0", "30.0")
    arms = ["dqn", *(f"{kind}:{kappa}" for kind in ("gram", "l2") for kappa in kappas)]
    arms += [f"gram:{kappa}:uncentered" for kappa in kappas]
    generator = np.random.default_rng(0)
    write_study(folder / "study", games=["Pong"], arms=arms, seeds=2, episodes=40, metric_rows=8, generator=generator)
    build(folder / "study", folder / "report", Options(replicates=100))
    return folder / "report"


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory) -> Path:
    """Games, arms and a title that try to be markup, LaTeX and mathematics."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = ["arm,game,seed,frames,return"]
    for arm in ("dqn", HOSTILE, '"><img src=x onerror=alert(2)>'):
        for game in (HOSTILE, "$x_1$ & </style>"):
            quoted = [f'"{text.replace(chr(34), chr(34) * 2)}"' for text in (arm, game)]
            rows += [f"{quoted[0]},{quoted[1]},{seed},{at * 100},{at}" for seed in (0, 1) for at in range(1, 11)]
    (folder / "theirs.csv").write_text("\n".join(rows) + "\n")
    from gramian.study.store import write_import

    write_import(folder / "theirs.csv", folder / "study")
    build(folder / "study", folder / "report", Options(replicates=100, title=HOSTILE))
    return folder / "report"


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()
