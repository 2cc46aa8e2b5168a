import colorsys

import pytest
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from gramian.core.arms import PENALTIES, arm_styles

KINDS = ["dqn", *(f"{kind}:1.0" for kind in PENALTIES)]


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


def test_no_two_of_a_hundred_arms_look_alike():
    styles = arm_styles([f"gram:{kappa}" for kappa in range(100)])
    assert len(set(styles.values())) == 100


def test_the_kinds_of_arms_differ_without_colour():
    looks = {(style.dash, style.marker, style.hatch) for style in arm_styles(KINDS).values()}
    assert len(looks) == len(KINDS)


def test_an_arm_keeps_its_look_whatever_the_others_are():
    assert arm_styles(["dqn", "gram:1.0"])["gram:1.0"] == arm_styles([*KINDS[:2], "gram:1.0"])["gram:1.0"]


@pytest.mark.parametrize("arm", KINDS)
def test_colours_stand_out_from_their_ground(arm):
    style = arm_styles(KINDS)[arm]
    assert contrast(style.color, "#ffffff") >= 3  # WCAG 2.1, graphical objects
    assert contrast(style.dark_color, "#14171b") >= 3


@pytest.mark.parametrize("arm", KINDS)
def test_light_and_dark_colours_are_of_one_hue(arm):
    style = arm_styles(KINDS)[arm]
    hues = [
        colorsys.rgb_to_hsv(*(int(c[at : at + 2], 16) for at in (1, 3, 5)))[0] for c in (style.color, style.dark_color)
    ]
    assert abs(hues[0] - hues[1]) < 0.06


def test_matplotlib_knows_every_style():
    for style in arm_styles([str(at) for at in range(60)]).values():
        assert style.symbol in Line2D.markers
        Line2D([], [], linestyle=style.linestyle)
        Rectangle((0, 0), 1, 1, hatch=style.hatch)


def test_a_labelled_arm_has_its_kinds_colour_and_a_line_of_its_own():
    styles = arm_styles(["dqn", "gram", "norm", "norm (matched)"])
    assert styles["norm (matched)"].color == styles["norm"].color
    assert styles["norm (matched)"].dash != styles["norm"].dash
    assert styles["norm (matched)"] == arm_styles(["norm (matched)"])["norm (matched)"]


def test_arms_of_one_kind_take_colours_that_are_still_free():
    styles = arm_styles(["dqn", "gram:0.1", "gram:1.0", "gram:10.0", "gram:1.0:uncentered"])
    assert len({style.color for style in styles.values()}) == 5
