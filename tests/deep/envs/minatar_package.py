"""The package ``minatar``, whose games are the oracle of ours."""

import logging


def reference_game(id_, seed, **options):
    logging.disable(logging.WARNING)  # the package warns where it cannot draw
    try:
        from minatar import Environment
    finally:
        logging.disable(logging.NOTSET)
    game = Environment(id_, **options)
    game.seed(seed)
    game.reset()
    return game
