"""The small form of the page: no scripts, and the report's own figures as pictures in it."""

from pathlib import Path

from gramian.report import reference
from gramian.report.dynamics import FIGURES, LABELS
from gramian.report.section import picture

COLORS = 256
"""Of a picture: enough to keep the arms' own, where bands lie over each other."""
REPRESENTATION = {
    "sparsity": "active features of a state, activity of a feature, sparsity by threshold",
    "correlation": "correlation of the features, ordered by clustering",
    "spectrum": "spectrum of the features' covariance",
}
"""Figures of ``gramian analyze`` and what they show, in this order; those of the training are the report's own."""


def pictures(folder: Path, captions: dict[str, str]) -> str:
    """Those of the figures that there are, each with its caption."""
    there = {folder / f"{name}.png": caption for name, caption in captions.items()}
    return "".join(picture(path, caption, COLORS) for path, caption in there.items() if path.is_file())


def feature_pictures(folder: Path, games: list[str]) -> str:
    """The metrics of the features during training: by games where there are figures of them, else by metrics."""
    by_game = {f"features-{game.replace('/', '-')}": f"{reference.title(game)}: features in training" for game in games}
    by_metric = {name.replace("_", "-").replace(".", "-"): LABELS[name] for name in FIGURES}
    return pictures(folder, by_game) or pictures(folder, by_metric)


def representation_pictures(folder: Path, games: list[str]) -> str:
    """The figures of the trained features, game by game."""
    return "".join(
        pictures(folder / "representation", {f"{name}-{game.replace('/', '-')}": f"{reference.title(game)}: {caption}"})
        for game in games
        for name, caption in REPRESENTATION.items()
    )
