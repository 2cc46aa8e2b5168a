import csv
from pathlib import Path

import pytest
from ale_py import roms

from gramian.core.errors import UserError
from gramian.core.games import GAMES, MINATAR_IDS, PAPER_TITLES, find_game

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "atari49.csv"


def test_there_are_49_atari_games_five_of_minatar_and_cartpole():
    kinds = [game.kind for game in GAMES.values()]
    assert (kinds.count("atari"), kinds.count("minatar"), kinds.count("cartpole")) == (49, 5, 1)


@pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference tables beside the repository")
def test_the_atari_titles_are_those_of_the_paper_s_table():
    with REFERENCE.open() as file:
        assert [row["game"] for row in csv.DictReader(file)] == list(PAPER_TITLES)


@pytest.mark.parametrize("title", PAPER_TITLES)
def test_every_title_leads_to_a_game_that_ale_has(title):
    game = find_game(title)
    assert game.title == title
    assert roms.get_rom_path(game.id) is not None
    assert find_game(game.id) is game


@pytest.mark.parametrize(
    "name", ["SpaceInvaders", "space_invaders", "spaceinvaders", "SPACE_INVADERS", "Space Invaders"]
)
def test_the_spelling_of_a_name_does_not_matter(name):
    assert find_game(name).id == "space_invaders"
    assert find_game(name).kind == "atari"


@pytest.mark.parametrize("id_", MINATAR_IDS)
def test_minatar_games_have_their_prefix(id_):
    game = find_game(f"MinAtar/{id_}")
    assert (game.kind, game.id, game.name) == ("minatar", id_, f"minatar/{id_}")


def test_cartpole_is_a_game():
    assert find_game("CartPole").kind == "cartpole"


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(UserError, match=r"unknown game 'seaqest'; did you mean 'seaquest'\?"):
        find_game("seaqest")
