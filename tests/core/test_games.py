import csv
from importlib.resources import files

import pytest
from ale_py import roms

from gramian.core.errors import UserError
from gramian.core.games import GAMES, MINATAR_IDS, PAPER_TITLES, find_game, game_name, title


def test_there_are_49_atari_games_five_of_minatar_and_cartpole():
    kinds = [game.kind for game in GAMES.values()]
    assert (kinds.count("atari"), kinds.count("minatar"), kinds.count("cartpole")) == (49, 5, 1)
    table = (files("gramian") / "data" / "atari49.csv").read_text(encoding="utf-8").splitlines()
    assert [row["game"] for row in csv.DictReader(table)] == list(PAPER_TITLES)
    assert all(roms.get_rom_path(game.id) is not None for game in GAMES.values() if game.kind == "atari")


@pytest.mark.parametrize("name", GAMES)
def test_every_spelling_leads_to_the_game(name):
    game = GAMES[name]
    spellings = [name, name.upper(), game.title, f"{game.title}-v1"]
    if game.kind == "atari":
        spellings += [f"ALE/{game.title}-v5", f"{game.title}NoFrameskip-v4", name.replace("_", " ")]
    for spelling in spellings:
        assert find_game(spelling) is game
        assert (game_name(spelling), title(spelling)) == (name, game.title)


def test_minatar_s_names_have_their_prefix():
    assert [find_game(f"MinAtar/{id_}").name for id_ in MINATAR_IDS] == [f"minatar/{id_}" for id_ in MINATAR_IDS]


@pytest.mark.parametrize("name", ["seaqest", "CartPole-v0"])
def test_an_unknown_name_gets_the_nearest_one(name):
    with pytest.raises(UserError, match=f"unknown game '{name}'; did you mean '(seaquest|cartpole)'"):
        find_game(name)
