"""The page in a real browser: chromium, from the disk, with no network."""

import pytest

from tests.report.conftest import HOSTILE

pytestmark = pytest.mark.slow

VIEWS = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}


class Opened:
    """A page with everything that went wrong in it."""

    def __init__(self, browser, report, **view):
        self.context = browser.new_context(offline=True, **view)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.troubles.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto((report / "index.html").as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def scroll_through(self):
        """Bring every figure near the window once, so that all are drawn."""
        for figure in self.page.query_selector_all(".figure, .panels, section"):
            figure.scroll_into_view_if_needed()
            self.page.wait_for_timeout(20)
        self.page.wait_for_timeout(100)
        return self

    def names(self, figure):
        """Names of the series that a figure shows."""
        script = "id => (document.getElementById(id).data || []).map(trace => trace.name).filter(Boolean)"
        return self.page.evaluate(script, figure)


@pytest.fixture
def open_page(browser):
    opened = []

    def open_report(report, **view):
        opened.append(Opened(browser, report, **(view or VIEWS["desktop"])))
        return opened[-1]

    yield open_report
    for one in opened:
        one.context.close()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("which", ["small_report", "hostile_report", "analyzed_report", "kappa_report"])
def test_it_renders_with_no_error_and_no_request(open_page, request, which, view):
    opened = open_page(request.getfixturevalue(which), **VIEWS[view]).scroll_through()
    figures = opened.page.query_selector_all(".figure")
    assert figures
    assert all(figure.query_selector(".main-svg") for figure in figures)
    assert opened.troubles == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_wider_than_the_window(open_page, small_report, view):
    page = open_page(small_report, **VIEWS[view]).scroll_through().page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_game_selector_shows_the_chosen_game(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    page.select_option("#game", label="Seaquest")
    assert page.evaluate("document.getElementById('game-figure').layout.title.text") == "Seaquest"
    assert page.locator("#features-game option:checked").inner_text() == "Seaquest"
    assert page.locator(".panel[aria-pressed=true] .name").inner_text() == "Seaquest"


def test_games_are_chosen_with_the_keyboard(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    page.focus("#game")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.getElementById('game-figure').layout.title.text") == "Pong"
    page.focus("#next")
    page.keyboard.press("Enter")
    assert page.evaluate("document.getElementById('game-figure').layout.title.text") == "Seaquest"
    page.keyboard.press("Space")
    assert page.evaluate("document.getElementById('game-figure').layout.title.text") == "Alien"


def test_a_panel_of_the_grid_opens_its_game_with_the_keyboard(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    page.locator(".panel").nth(2).focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.getElementById('game-figure').layout.title.text") == "Seaquest"
    assert page.evaluate("document.activeElement.id") == "game"


def test_an_arm_is_switched_off_in_all_figures_with_the_keyboard(open_page, small_report):
    opened = open_page(small_report).scroll_through()
    figures = ("game-figure", "aggregate-figure", "profile-figure", "features-figure")
    assert all("gram:10.24" in opened.names(figure) for figure in figures)
    lines = opened.page.locator("#panels path").count()
    opened.page.focus('[data-arm="2"]')
    opened.page.keyboard.press("Space")
    assert not any("gram:10.24" in opened.names(figure) for figure in figures)
    assert all("dqn" in opened.names(figure) for figure in figures)
    assert opened.page.locator("#panels path").count() < lines
    opened.page.keyboard.press("Space")
    assert all("gram:10.24" in opened.names(figure) for figure in figures)


def test_all_arms_are_switched_off_and_on_at_once(open_page, small_report):
    opened = open_page(small_report).scroll_through()
    opened.page.click("#none")
    assert opened.names("profile-figure") == []
    opened.page.click("#all")
    assert opened.names("profile-figure") == ["dqn", "decor:10.24", "gram:10.24"]


@pytest.mark.parametrize(("overlay", "on"), [("bands", True), ("seeds", False), ("paper", True), ("dopamine", True)])
def test_each_overlay_adds_to_the_curves_and_takes_away(open_page, small_report, overlay, on):
    page = open_page(small_report).scroll_through().page
    count = "document.getElementById('game-figure').data.length"
    before = page.evaluate(count)
    page.focus(f'[data-overlay="{overlay}"]')
    page.keyboard.press("Space")
    after = page.evaluate(count)
    assert after < before if on else after > before


def test_the_papers_scores_and_dopamines_curve_are_overlaid(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    page.select_option("#game", label="Pong")
    values = page.evaluate(
        "document.getElementById('game-figure').data.filter(t => t.mode === 'markers').map(t => t.y[0])"
    )
    assert values == [19.9, 20.0, 6.2]
    assert "Dopamine DQN" in page.evaluate("document.getElementById('game-figure').data.map(t => t.name)")


def test_an_arm_has_one_colour_one_dash_and_one_marker_in_all_figures(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    looks = page.evaluate(
        """() => ["game-figure", "aggregate-figure", "profile-figure", "features-figure"].flatMap((id) =>
        document.getElementById(id).data.filter((t) => t.name === "gram:10.24" && t.mode === "lines+markers")
        .map((t) => [t.line.color, t.line.dash, t.marker.symbol].join()))"""
    )
    assert len(looks) > 4
    assert len(set(looks)) == 1
    page.select_option("#gain-arm", label="gram:10.24")
    assert page.evaluate("document.getElementById('gain-figure').data[0].marker.color") == looks[0].split(",")[0]


def test_median_and_iqm_are_chosen(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    last = "document.getElementById('aggregate-figure').data.find(t => t.name === 'dqn').y.at(-1)"
    median = page.evaluate(last)
    page.select_option("#aggregate", "iqm")
    assert page.evaluate(last) != median


def test_bars_of_gains_come_with_their_count_and_intervals(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    page.select_option("#gain-arm", label="gram:10.24")
    sentence = page.inner_text("#gain-count")
    bars = page.evaluate("document.getElementById('gain-figure').data[0].x")
    assert sentence.startswith(f"gram:10.24 gains in {sum(bar > 0 for bar in bars)} of 3 games")
    assert "the paper counts 40 gains of 49" in sentence
    assert all(value >= 0 for value in page.evaluate("document.getElementById('gain-figure').data[0].error_x.array"))


def test_metrics_that_are_written_seldom_are_joined_by_lines(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    traces = page.evaluate("document.getElementById('features-figure').data.map(t => [t.x.length, t.y.includes(null)])")
    assert traces
    assert all(trace == [20, False] for trace in traces)


def test_every_selector_of_a_game_follows_the_others(open_page, analyzed_report):
    page = open_page(analyzed_report).scroll_through().page
    page.select_option("#representation-game", label="Pong")
    assert page.input_value("#game") == page.input_value("#features-game") == "1"
    page.select_option("#game", label="Seaquest")
    assert page.is_visible("#representation-none")
    assert page.is_hidden("#representation-body")


def test_correlations_are_shown_for_each_arm_that_is_switched_on(open_page, analyzed_report):
    page = open_page(analyzed_report).scroll_through().page
    count = "() => document.getElementById('correlation-figure').data.length"
    assert page.evaluate(count) == 3
    page.uncheck("[data-arm='1']")
    assert page.evaluate(count) == 2


def test_the_chosen_kappa_of_each_penalty_is_ringed(open_page, kappa_report):
    opened = open_page(kappa_report).scroll_through()
    assert opened.names("kappa-figure") == ["gram", "l2", "gram:uncentered"]
    rings = "() => document.getElementById('kappa-figure').data.filter(t => t.marker?.symbol === 'circle-open').length"
    assert opened.page.evaluate(rings) == 3
    opened.page.select_option("#kappa-score", "auc")
    assert opened.page.evaluate(rings) == 3


def test_a_penalty_is_switched_off_with_the_keyboard(open_page, kappa_report):
    opened = open_page(kappa_report).scroll_through()
    opened.page.focus("[data-penalty='l2']")
    opened.page.keyboard.press("Space")
    assert opened.names("kappa-figure") == ["gram", "gram:uncentered"]


def test_hovering_shows_values(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    page.locator("#game-figure").scroll_into_view_if_needed()
    box = page.locator("#game-figure .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#game-figure .hoverlayer .legendtext, #game-figure .hoverlayer .hovertext")
    assert "gram:10.24" in page.text_content("#game-figure .hoverlayer")


def test_the_table_is_sorted_by_its_headings_with_the_keyboard(open_page, small_report):
    page = open_page(small_report).page
    heading = page.locator("#scores thead button", has_text="gram:10.24").first
    heading.focus()
    page.keyboard.press("Enter")
    first = page.locator("#scores tbody tr th").all_inner_texts()
    page.keyboard.press("Enter")
    assert page.locator("#scores tbody tr th").all_inner_texts() == first[::-1]
    assert page.locator("#scores th[aria-sort]").count() == 1


def test_light_and_dark_are_switched_and_the_figures_follow(open_page, small_report):
    page = open_page(small_report, **VIEWS["dark"]).scroll_through().page
    line = "document.getElementById('game-figure').data.find(t => t.name === 'gram:10.24').line.color"
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(line), page.evaluate(ground)
    page.focus("#theme")
    page.keyboard.press("Enter")
    light = page.evaluate(line), page.evaluate(ground)
    assert dark[1] == "rgb(20, 23, 27)"
    assert light == ("#0072b2", "rgb(255, 255, 255)")
    assert dark[0] != light[0]


def test_every_control_has_a_name_and_can_be_reached_with_tab(open_page, small_report):
    page = open_page(small_report).scroll_through().page
    page.evaluate("scrollTo(0, 0)")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.dataset.overlay || ''"))
    assert {"theme", "all", "none", "bands", "game", "previous", "next", "aggregate", "gain-arm"} <= reached
    unnamed = page.evaluate(
        """[...document.querySelectorAll("button, select, input")].filter((node) =>
        !(node.textContent.trim() || node.ariaLabel || node.labels?.length)).length"""
    )
    assert unnamed == 0


def test_a_hostile_name_is_shown_as_text(open_page, hostile_report):
    opened = open_page(hostile_report).scroll_through()
    page = opened.page
    assert page.inner_text("h1") == HOSTILE
    assert page.title() == HOSTILE
    assert HOSTILE in page.locator("#game option").all_inner_texts()
    assert HOSTILE in page.locator("#arms label").all_inner_texts()
    page.select_option("#game", label=HOSTILE)
    assert page.locator("#game-figure .gtitle").text_content() == HOSTILE
    assert HOSTILE in page.locator("#game-rows th").all_inner_texts()
    assert page.locator("#run details").last.locator("td", has_text="alert(1)").count() > 0
    assert opened.troubles == []


def test_a_page_made_again_in_the_middle_of_a_study_shows_what_is_missing(open_page, small_study, tmp_path):
    import json
    import shutil

    from gramian.report import Options, build

    study = tmp_path / "study"
    shutil.copytree(small_study, study)
    run = study / "populations" / "0" / "pong-gram-k10.24-s1"
    (run / "status.json").write_text(json.dumps({"state": "failed", "agent_steps": 5, "reason": "disk <full>"}))
    build(study, tmp_path / "report", Options(replicates=100))
    page = open_page(tmp_path / "report").page
    assert "26 of 27 runs finished" in page.inner_text("header")
    assert "disk <full>" in page.inner_text("#run details[open]")


@pytest.mark.parametrize("which", ["small_report", "analyzed_report", "kappa_report"])
def test_all_figures_are_drawn_before_the_page_is_printed(open_page, request, which):
    page = open_page(request.getfixturevalue(which)).page
    figures = page.query_selector_all(".figure")
    assert not all(figure.query_selector(".main-svg") for figure in figures)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(figure.query_selector(".main-svg") for figure in figures)
    assert page.query_selector_all("#panels svg")
