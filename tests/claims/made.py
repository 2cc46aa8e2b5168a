"""Tables for tests of the claims: committed ones with changes, and invented ones, in memory."""

from pathlib import Path

from gramian.claims import Tables, claims, judge
from gramian.claims.rules import Judgement
from gramian.claims.tables import Row

ROOT = Path(__file__).parents[2]
CLAIMS = {claim.id: claim for claim in claims()}
PARTS = [part for claim in CLAIMS.values() for part in claim.parts]


class Made(Tables):
    """Tables that can be put and changed; without a folder there are no others."""

    def __init__(self, folder: Path = Path("nowhere")) -> None:
        super().__init__(folder)
        self.hidden: set[str] = set()

    def has(self, name):
        return name not in self.hidden and (name in self._read or super().has(name))

    def rows(self, name, where=None):
        if name in self.hidden:
            self._read.pop(name, None)
        return super().rows(name, where)

    def put(self, name, rows):
        fields = [{column: str(value) for column, value in row.items()} for row in rows]
        self._read[name] = [Row(self.folder / name, row) for row in fields]
        return self

    def edit(self, name, where, **changes):
        """Change fields in the rows that fit."""
        fitting = [row for row in self.rows(name) if row.fits(where)]
        assert fitting
        self.put(name, [row.fields | (changes if row in fitting else {}) for row in self.rows(name)])
        return self

    def keep(self, name, fits):
        return self.put(name, [row.fields for row in self.rows(name) if fits(row)])


def committed() -> Made:
    return Made(ROOT / "results")


def judged(claim, tables, setting="") -> Judgement:
    """The judgement of the first setting, or of the first that begins so."""
    entry = judge(CLAIMS[claim], tables)
    parts = zip(CLAIMS[claim].parts, entry.judgements, strict=True)
    return next(found for part, found in parts if part.setting.startswith(setting))


def verdict(claim, tables):
    return judge(CLAIMS[claim], tables).verdict


def score_rows(values, areas=None, *, frames=100, random=-10.0):
    """Rows of a ``scores.csv`` from the values of each game and arm by seed; None is a run that is not there."""
    return [
        {"game": game, "arm": arm, "seed": seed, "state": "done", "frames": frames, "random": random}
        | {"final_score": value, "human_normalised": value, "auc": areas[game, arm][seed] if areas else value}
        for (game, arm), found in values.items()
        for seed, value in enumerate(found)
        if value is not None
    ]


def scores(means, *, games=49, seeds=3, frames=20_000_000):
    """Those of arms whose runs have a mean in every game, and a little noise."""
    values = {
        (f"game{game}", arm): [mean + 0.01 * seed for seed in range(seeds)]
        for arm, mean in means.items()
        for game in range(games)
    }
    return score_rows(values, frames=frames, random=0.0)


def measures(values, *, game="seaquest", agent_steps=5_000_000):
    """Rows of a ``measures.csv``: for each arm and measure the values of its seeds."""
    return [
        {"game": game, "arm": arm, "seed": seed, "agent_steps": agent_steps, "measure": name, "value": value}
        for (arm, name), found in values.items()
        for seed, value in enumerate(found)
    ]


def features(values, *, game="minatar/seaquest", frames=1_000_000):
    """Rows of a ``features.csv``: for each arm and column the values of its seeds."""
    seeds, columns = len(next(iter(values.values()))), dict.fromkeys(column for _, column in values)
    return [
        {"game": game, "arm": arm, "seed": seed, "state": "done", "frames": frames}
        | {column: values[arm, column][seed] if (arm, column) in values else "" for column in columns}
        for arm in dict.fromkeys(arm for arm, _ in values)
        for seed in range(seeds)
    ]
