import pytest

from gramian.study.run import STRETCH_S, Deadline

WINDOW_S = 4 * STRETCH_S

LOOK_S = 5.0


class Race:
    """Populations that make steps, a clock, and an allotment that looks at both."""

    def __init__(self, wanted, ends):
        self.wanted, self.now, self.told = wanted, 0.0, []
        self.done = dict.fromkeys(wanted, 0.0)
        self.allotment = Deadline(wanted, ends, self.told.append, lambda: self.now)
        self.allotment.look(self.done)

    def run(self, seconds, rate):
        """Go on with ``rate`` steps a second, which all that is at work share; gives what was stopped, and when."""
        stopped, end = [], self.now + seconds
        while self.now < end:
            self.now += LOOK_S
            going = [name for name in self.wanted if name not in self.told and self.done[name] < self.wanted[name]]
            for name in going:
                self.done[name] = min(self.wanted[name], self.done[name] + rate * LOOK_S / len(going))
            before = set(self.told)
            self.allotment.look(self.done)
            stopped += [(self.now, name) for name in self.wanted if name in self.told and name not in before]
        return stopped


def test_nothing_is_stopped_that_will_be_done_in_time():
    race = Race({"p000": 1_000, "p001": 1_000}, ends=300.0)
    assert race.run(300.0, rate=10.0) == []
    assert race.done == race.wanted


def test_without_an_end_nothing_is_ever_stopped():
    race = Race({"p000": 1_000_000}, ends=float("inf"))
    assert race.run(10 * WINDOW_S, rate=0.001) == []


def test_of_equals_the_last_is_stopped_so_that_the_others_are_done():
    race = Race({"p000": 1_000, "p001": 1_000, "p002": 1_000}, ends=300.0)
    assert race.run(300.0, rate=8.0) == [(WINDOW_S, "p002")]
    assert race.done["p000"] == race.done["p001"] == 1_000


def test_the_one_with_the_most_to_do_is_stopped_first():
    race = Race({"p000": 2_000, "p001": 500}, ends=200.0)
    assert race.run(200.0, rate=8.0) == [(WINDOW_S, "p000")]
    assert race.done["p001"] == 500


def test_the_rate_is_looked_at_anew_before_another_one_is_stopped():
    race = Race(dict.fromkeys(("p000", "p001", "p002"), 1_000), ends=500.0)
    (first, _), (second, _) = race.run(500.0, rate=4.0)
    assert second - first >= WINDOW_S
    assert race.done["p000"] == 1_000


@pytest.mark.parametrize("populations", [1, 3])
def test_where_nothing_can_be_finished_everything_goes_on_to_the_end(populations):
    wanted = {f"p00{number}": 100_000 for number in range(populations)}
    race = Race(wanted, ends=1_500.0)
    assert race.run(1_500.0, rate=10.0) == [(1_500.0, name) for name in wanted]


def test_what_has_failed_stops_nobody():
    race = Race({"p000": 1_000, "p001": 5_000}, ends=300.0)
    race.told.append("p001")  # makes no more steps
    race.allotment.leave_out("p001")
    assert race.run(300.0, rate=5.0) == []
    assert race.done["p000"] == 1_000


@pytest.mark.parametrize("pause", [30.0, 50.0, 115.0, 140.0, 250.0])
@pytest.mark.parametrize("before", [0.0, 60.0, 300.0])
def test_a_pause_in_which_everybody_starts_or_compiles_stops_nobody(before, pause):
    race = Race({"p000": 4_500, "p001": 4_500}, ends=1_200.0)
    assert race.run(before, rate=10.0) == race.run(pause, rate=0.0) == []
    assert race.run(1_200.0 - before - pause, rate=10.0) == []
    assert race.done == race.wanted


def test_at_the_end_all_that_is_left_is_stopped_and_told_so_until_it_is():
    race = Race({"p000": 100, "p001": 1_000}, ends=60.0)
    assert race.run(50.0, rate=4.0) == []  # too early to know
    assert race.run(10.0, rate=4.0) == [(60.0, "p001")]
    race.allotment.look(race.done)
    assert race.told == ["p001", "p001"]
    assert race.allotment.is_over
