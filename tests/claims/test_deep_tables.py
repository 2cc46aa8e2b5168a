"""Tables of the deep half appear in the ledger when they are put into ``results/``."""

from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from gramian.claims import Tables, claims, judge, page
from gramian.claims.seeds import scores as compare
from gramian.claims.tables import MissingRowsError
from gramian.core.errors import UserError
from gramian.report import Options, build
from gramian.representation import tables
from gramian.representation.tables import Measure
from gramian.study.store import write_import
from tests.claims.test_paper import edit, write

CLAIMS = {claim.id: claim for claim in claims()}


def scores(path, means, *, games=49, seeds=3, frames=20_000_000):
    """A ``scores.csv`` in which an arm's runs have its mean in every game, and a little noise."""
    rows = [
        {
            "game": f"game{game}", "arm": arm, "seed": seed, "run": f"{arm}-{game}-{seed}", "state": "done",
            "frames": frames, "episodes": 1000, "final_score": mean + 0.01 * seed, "auc": mean + 0.01 * seed,
            "random": 0, "human": 1, "human_normalised": mean + 0.01 * seed,
        }
        for arm, mean in means.items()
        for game in range(games)
        for seed in range(seeds)
    ]  # fmt: skip
    write(path, rows)


def measures(path, values, *, game="seaquest", agent_steps=5_000_000):
    """A ``measures.csv`` as ``gramian analyze`` writes it: for each arm and measure the values of its seeds."""
    path.parent.mkdir(parents=True)
    rows = [
        Measure(f"{arm}-s{seed}", game, arm, seed, agent_steps, measure, value)
        for (arm, measure), found in values.items()
        for seed, value in enumerate(found)
    ]
    tables.write(path, rows)


def judged(claim, folder, setting=""):
    """The verdict in the first setting, or in the first that begins so."""
    entry = judge(CLAIMS[claim], Tables(Path(folder)))
    settings = [part.setting for part in CLAIMS[claim].parts]
    return entry.judgements[next(i for i, name in enumerate(settings) if name.startswith(setting))]


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ({"dqn": 0.2, "gram:10.24": 0.6, "norm:1.0": 0.3}, "reproduced"),
        ({"dqn": 0.2, "gram:10.24": 0.6, "norm:1.0": 0.6}, "confounded"),
        ({"dqn": 0.6, "gram:10.24": 0.2, "norm:1.0": 0.1}, "not reproduced"),
        ({"dqn": 0.2, "gram:10.24": 0.6}, "not run in full"),
    ],
)
@pytest.mark.parametrize("claim", ["forty-of-49", "median-score"])
def test_scores_are_judged_against_dqn_and_the_control(claim, means, expected, tmp_path):
    scores(tmp_path / "atari/scores.csv", means)
    assert judged(claim, tmp_path).verdict == expected


@pytest.mark.parametrize(("decor", "expected"), [(0.6, "reproduced"), (0.3, "not reproduced")])
def test_equivalence_takes_an_interval_within_the_margin(decor, expected, tmp_path):
    scores(tmp_path / "atari/scores.csv", {"gram": 0.6, "decor": decor}, seeds=10)
    assert judged("gram-scores-like-decor", tmp_path).verdict == expected


@pytest.mark.parametrize(
    ("short", "reason"),
    [
        ({"games": 5}, "5 games, where a verdict takes 49"),
        ({"frames": 1_000_000}, "1,000,000 frames, where a verdict takes 17,900,000"),
        (
            {"games": 4, "seeds": 1, "frames": 4_000_000},
            "4 games, where a verdict takes 49; 1 seed, where it takes 3; 4,000,000 frames, where it takes 17,900,000",
        ),
    ],
)
def test_runs_of_fewer_games_or_frames_give_no_numbers_and_all_that_is_lacking_is_named(short, reason, tmp_path):
    scores(tmp_path / "atari/scores.csv", {"dqn": 0.2, "gram": 0.6, "norm": 0.3}, **short)
    found = judged("median-score", tmp_path)
    assert (found.verdict, found.reason, found.numbers) == ("not run in full", reason, [])


def test_runs_of_fewer_agent_steps_give_no_numbers(tmp_path):
    measures(tmp_path / "atari/measures.csv", {key: found[:2] for key, found in DENSER.items()}, agent_steps=1_000_000)
    found = judged("denser-features", tmp_path, "Seaquest, 20M")
    assert found.reason == "2 seeds, where a verdict takes 3; 1,000,000 agent steps, where it takes 4,500,000"
    assert not found.numbers


def test_too_few_seeds_give_preliminary_numbers_and_no_verdict(tmp_path):
    scores(tmp_path / "atari/scores.csv", {"dqn": 0.2, "gram": 0.6, "norm": 0.3}, seeds=2)
    found = judged("median-score", tmp_path)
    assert (found.verdict, found.reason) == ("not run in full", "2 seeds, where a verdict takes 3")
    assert found.numbers[0][0] == "median of DQN-Gram less that of DQN"
    assert found.numbers[0][1].startswith("0.4")
    written = page([judge(CLAIMS["median-score"], Tables(tmp_path))])
    assert "2 seeds, where a verdict takes 3. The numbers are preliminary." in written


def test_nearly_as_many_frames_give_preliminary_numbers_and_no_verdict(tmp_path):
    arms = {"dqn": 0.2, "gram (0.082)": 0.6, "norm (matched)": 0.3}
    for frames, shown in ((3_600_000, True), (3_500_000, False)):  # a verdict takes 3,900,000
        scores(tmp_path / "atari/scores.csv", arms, games=4, frames=frames)
        found = judged("median-score", tmp_path, "four Atari games, 4M frames, MinAtar's κ")
        assert found.verdict == "not run in full"
        assert found.reason.endswith("3,900,000")
        assert bool(found.numbers) == shown


def test_a_setting_that_names_its_games_and_frames_needs_as_many():
    for part in (part for claim in CLAIMS.values() for part in claim.parts):
        assert ("frames" in part.setting) == ("frames" in part.needs), part.setting
        assert ("games" in part.setting) == ("games" in part.needs), part.setting


def test_a_run_without_a_score_is_none_of_the_seeds_behind_a_verdict(tmp_path):
    scores(tmp_path / "atari/scores.csv", {"dqn": 0.2, "gram": 0.6, "norm": 0.3})
    edit(tmp_path / "atari/scores.csv", {"arm": "gram", "game": "game7", "seed": "2"}, {"human_normalised": ""})
    assert judged("median-score", tmp_path).reason == "2 seeds, where a verdict takes 3"


def test_a_claim_is_not_yet_run_where_no_setting_has_a_table_and_not_run_in_full_where_one_has(tmp_path):
    assert judge(CLAIMS["gram-scores-like-decor"], Tables(tmp_path)).verdict == "not yet run"
    scores(tmp_path / "minatar/scores.csv", {"gram": 0.6, "decor": 0.6}, games=5, frames=1_000_000)
    entry = judge(CLAIMS["gram-scores-like-decor"], Tables(tmp_path))
    assert (entry.verdict, entry.because) == ("not run in full", "awaits `results/atari/scores.csv`")
    scores(tmp_path / "atari/scores.csv", {"dqn": 0.2, "gram": 0.6}, games=4)
    entry = judge(CLAIMS["gram-scores-like-decor"], Tables(tmp_path))
    assert (entry.verdict, entry.because) == ("not run in full", "the table 'atari/scores.csv' has no runs of decor")


def test_smaller_settings_do_not_count_for_the_verdict_where_the_papers_was_run(tmp_path):
    scores(tmp_path / "atari/scores.csv", {"gram": 0.6, "decor": 0.6})
    scores(tmp_path / "minatar/scores.csv", {"gram": 0.6, "decor": 0.3}, games=5, frames=1_000_000)
    entry = judge(CLAIMS["gram-scores-like-decor"], Tables(tmp_path))
    assert entry.verdict == "reproduced"
    assert [found.verdict for _, found in entry.elsewhere] == ["not reproduced"]


DENSER = {("dqn", "sparsity"): [0.7, 0.71, 0.72], ("gram:1", "sparsity"): [0.3, 0.31, 0.32]}


@pytest.mark.parametrize(
    ("control", "expected"),
    [([0.69, 0.7, 0.71], "reproduced"), ([0.3, 0.31, 0.32], "confounded"), (None, "not run in full")],
)
def test_denser_features_must_not_come_from_shrinking(control, expected, tmp_path):
    values = DENSER | ({("norm", "sparsity"): control} if control else {})
    measures(tmp_path / "atari/measures.csv", values)
    found = judged("denser-features", tmp_path)
    assert found.verdict == expected
    if control is None:
        assert "has no runs of norm" in found.reason


def test_sparser_features_are_not_denser_with_or_without_the_control(tmp_path):
    swapped = {("dqn", "sparsity"): DENSER["gram:1", "sparsity"], ("gram:1", "sparsity"): DENSER["dqn", "sparsity"]}
    measures(tmp_path / "atari/measures.csv", swapped)
    found = judged("denser-features", tmp_path)
    assert found.verdict == "not reproduced"
    assert found.numbers[1][1] == "not run"


GROWTHS = [
    # shares of the norm and of the TD error, and whether it is mainly the norm and not the TD error
    ([0.8, 0.82, 0.81], [0.1, 0.12, 0.11], "reproduced", "reproduced"),
    ([0.8, 0.82, 0.81], [0.6, 0.62, 0.61], "reproduced", "not reproduced"),
    ([0.8, 0.82, 0.81], [0.47, 0.5, 0.53], "reproduced", "undecided"),
    ([0.8, 0.82, 0.81], [0.82, 0.8, 0.81], "confounded", "not reproduced"),
    ([0.2, 0.22, 0.21], [0.1, 0.12, 0.11], "not reproduced", "reproduced"),
]


@pytest.mark.parametrize(("norm", "td_error", "mainly", "not_the_td_error"), GROWTHS)
@pytest.mark.parametrize(
    ("table", "setting"),
    [
        ("atari/measures.csv", "Seaquest, 20M frames"),
        ("atari/measures.csv", "Seaquest, 4M frames"),
        ("minatar/features.csv", "MinAtar Seaquest, 1M frames"),
    ],
)
def test_the_norm_and_the_td_error_have_verdicts_of_their_own(
    table, setting, norm, td_error, mainly, not_the_td_error, tmp_path
):
    values = {("dqn", "growth_share_feature_norm"): norm, ("dqn", "growth_share_td_error"): td_error}
    if table == "atari/measures.csv":
        measures(tmp_path / table, values, agent_steps=5_000_000 if "20M" in setting else 1_000_000)
    else:
        logs = ("head_gradient", "feature_norm", "td_error")
        features(tmp_path / table, values | {("dqn", f"growth_log_{name}"): [1.0, 1.1, 0.9] for name in logs})
    assert judged("gradient-growth", tmp_path, f"{setting}: mainly").verdict == mainly
    assert judged("gradient-growth", tmp_path, f"{setting}: not").verdict == not_the_td_error


def test_no_effect_but_that_of_the_td_error_is_judged_without_a_control():
    effects = [
        part
        for claim in CLAIMS.values()
        for part in claim.parts
        if getattr(part.rule, "claim", "").startswith("; the claim is that it is ")
    ]
    alone = {part.setting.partition(": ")[2] for part in effects if part.rule.beyond is None}
    assert alone == {"not the TD error"}


@pytest.mark.parametrize("arm", ["dqn", "gram:1", "norm"])
def test_a_measure_that_is_no_number_gives_no_verdict(arm, tmp_path):
    values = DENSER | {("norm", "sparsity"): [0.69, 0.7, 0.71]}
    measures(tmp_path / "atari/measures.csv", values | {(arm, "sparsity"): [0.5, float("nan"), 0.5]})
    found = judged("denser-features", tmp_path)
    assert found.verdict == "not run in full"
    assert "has nan in column value, where a verdict takes a number" in found.reason


def test_a_control_of_one_seed_has_no_interval_and_gives_no_verdict(tmp_path):
    measures(tmp_path / "atari/measures.csv", DENSER | {("norm", "sparsity"): [0.7]})
    found = judged("denser-features", tmp_path)
    assert found.verdict == "not run in full"
    assert found.reason.endswith("(no interval) (unpaired); a verdict takes a number with its interval")


def test_two_coefficients_of_one_penalty_are_refused(tmp_path):
    measures(tmp_path / "atari/measures.csv", DENSER | {("gram:2", "sparsity"): [0.3, 0.3, 0.3]})
    with pytest.raises(UserError, match="several arms of gram: gram:1, gram:2; keep one"):
        judged("denser-features", tmp_path)


def test_the_scores_of_a_report_are_read_as_they_are(tmp_path):
    games = ["asterix", "breakout", "freeway", "seaquest", "space_invaders"]
    lines = [
        f"{arm},minatar/{game},{seed},{frames},{mean + seed / 10}"
        for arm, mean in (("dqn", 1), ("gram:10.24", 3), ("norm (matched)", 2), ("norm:1.0", 2))
        for game in games
        for seed in range(3)
        for frames in (500_000, 1_000_000)
    ]
    (tmp_path / "theirs.csv").write_text("\n".join(["arm,game,seed,frames,return", *lines]))
    write_import(tmp_path / "theirs.csv", tmp_path / "study")
    build(tmp_path / "study", tmp_path / "results" / "minatar", Options(replicates=100))
    found = judged("forty-of-49", tmp_path / "results", "five MinAtar")
    assert found.verdict == "reproduced"
    assert found.numbers[-1] == ("runs behind it", "5 games, 3 seeds, 1,000,000 frames")


def features(path, values, *, game="minatar/seaquest", frames=1_000_000):
    """A ``features.csv``: for each arm and column the values of its seeds."""
    arms = dict.fromkeys(arm for arm, _ in values)
    columns = dict.fromkeys(column for _, column in values)
    seeds = len(next(iter(values.values())))
    rows = [
        {"run": f"{arm}-s{seed}", "game": game, "arm": arm, "seed": seed, "state": "done", "frames": frames}
        | {column: values[arm, column][seed] if (arm, column) in values else "" for column in columns}
        for arm in arms
        for seed in range(seeds)
    ]
    write(path, rows)


@pytest.mark.parametrize(
    ("matched", "expected"), [([0.7, 0.71, 0.69], "reproduced"), ([0.3, 0.31, 0.29], "confounded")]
)
def test_features_of_minatars_seaquest_are_judged_at_equal_norm(matched, expected, tmp_path):
    played = {"dqn": [0.7, 0.71, 0.72], "gram": [0.3, 0.31, 0.32], "norm (matched)": matched, "norm": [0.7, 0.7, 0.7]}
    minatar_sparsity(tmp_path, played)
    found = judged("denser-features", tmp_path, "MinAtar Seaquest")
    assert found.verdict == expected
    assert found.numbers[-1] == ("runs behind it", "one game, 3 seeds, 1,000,000 agent steps")


def minatar_sparsity(folder, played, **options):
    values = {(arm, "sparsity"): found for arm, found in played.items()}
    measures(folder / "minatar/measures.csv", values, game="minatar/seaquest", agent_steps=1_000_000, **options)


def test_density_is_judged_by_states_in_play_and_the_held_out_ones_stand_beside_where_there_are_any(tmp_path):
    minatar_sparsity(
        tmp_path, {"dqn": [0.7, 0.71, 0.72], "gram": [0.3, 0.31, 0.32], "norm (matched)": [0.7, 0.71, 0.69]}
    )
    held_out = "sparsity on held-out states with the penalty less that without"
    alone = judged("denser-features", tmp_path, "MinAtar Seaquest")
    assert (alone.verdict, dict(alone.numbers)[held_out]) == ("reproduced", "–")
    sparser = {"dqn": [0.3, 0.31, 0.32], "gram": [0.7, 0.71, 0.72], "norm (matched)": [0.3, 0.31, 0.29]}
    features(tmp_path / "minatar/features.csv", {(arm, "held_out_sparsity"): v for arm, v in sparser.items()})
    entry = judge(CLAIMS["denser-features"], Tables(tmp_path))
    found = entry.judgements[-1]
    assert found.verdict == "reproduced"
    assert dict(found.numbers)[held_out].startswith("0.4")
    assert "was settled when both numbers were known" in page([entry])


def test_preliminary_numbers_have_the_control_beside_them(tmp_path):
    minatar_sparsity(tmp_path, {"dqn": [0.7, 0.72], "gram": [0.3, 0.31], "norm (matched)": [0.3, 0.32]})
    found = judged("denser-features", tmp_path, "MinAtar Seaquest")
    assert (found.verdict, found.reason) == ("not run in full", "2 seeds, where a verdict takes 3")
    assert [label for label, _ in found.numbers[:2]] == [
        "sparsity with the penalty less that without",
        "sparsity with the penalty less that of `norm` at equal feature norm",
    ]


@pytest.mark.parametrize(("matched", "expected"), [(0.3, "reproduced"), (0.6, "confounded")])
def test_areas_on_minatar_are_judged_at_equal_norm_beside_the_claim(matched, expected, tmp_path):
    means = {"dqn": 0.2, "gram": 0.6, "norm": 0.3, "norm (matched)": matched}
    scores(tmp_path / "minatar/scores.csv", means, games=5, frames=1_000_000)
    entry = judge(CLAIMS["forty-of-49"], Tables(tmp_path))
    assert [found.verdict for found in entry.judgements] == ["not yet run", "not yet run", "not yet run", expected]
    assert entry.verdict == "not run in full"


def test_equivalence_is_undecided_where_the_interval_reaches_out_of_the_margin(tmp_path):
    scores(tmp_path / "minatar/scores.csv", {"gram": 0.6, "decor": 0.6}, games=5, seeds=3, frames=1_000_000)
    for seed, score in (("0", 0.5), ("2", 0.7)):  # each wins a pair of each game, and they tie in the third
        edit(tmp_path / "minatar/scores.csv", {"arm": "gram", "seed": seed}, {"final_score": score})
    found = judged("gram-scores-like-decor", tmp_path, "five MinAtar")
    assert found.verdict == "undecided"
    assert found.reason.endswith("the claim is that it lies within 0.4 to 0.6, and the interval reaches out of that")


FOUR = {"dqn": 0.2, "gram": 0.1, "gram (0.082)": 0.6}


@pytest.mark.parametrize(("matched", "expected"), [(0.3, "reproduced"), (0.6, "confounded")])
@pytest.mark.parametrize("claim", ["forty-of-49", "median-score"])
def test_the_short_study_of_atari_is_judged_at_the_chosen_coefficient_and_equal_norm(
    claim, matched, expected, tmp_path
):
    scores(tmp_path / "atari/scores.csv", FOUR | {"norm (matched)": matched}, games=4, frames=4_000_000)
    assert judged(claim, tmp_path, "four Atari games, 4M frames, MinAtar's κ").verdict == expected
    assert judged(claim, tmp_path, "49 Atari").verdict == "not run in full"


@pytest.mark.parametrize(
    ("author", "expected"), [(0.1, "not reproduced"), (0.4, "reproduced"), (0.3, "confounded"), (0.25, "confounded")]
)
@pytest.mark.parametrize("claim", ["forty-of-49", "median-score"])
def test_the_short_study_of_atari_is_judged_at_the_authors_coefficient_too(claim, author, expected, tmp_path):
    means = FOUR | {"gram": author, "norm (matched)": 0.3}
    scores(tmp_path / "atari/scores.csv", means, games=4, frames=4_000_000)
    found = judged(claim, tmp_path, "four Atari games, 4M frames, the author's κ")
    assert found.verdict == expected
    assert "`norm (matched)`" in found.numbers[1][0]  # whatever the verdict, the control is shown
    assert judged(claim, tmp_path, "four Atari games, 4M frames, MinAtar's κ").verdict == "reproduced"


@pytest.mark.parametrize(
    ("claim", "measure"),
    [
        ("denser-features", "sparsity"),
        ("falling-terms", "feature_norm"),
        ("falling-terms", "cross_term"),
        ("falling-terms", "std_sum"),
    ],
)
@pytest.mark.parametrize(("matched", "expected"), [([0.6, 0.65, 0.7], "reproduced"), ([0.3, 0.4, 0.5], "confounded")])
def test_features_of_the_short_study_of_atari_are_judged_at_equal_norm(claim, measure, matched, expected, tmp_path):
    names = ("effective_rank", "mean_abs_correlation", "dormant_share_0.025", measure)
    values = {(arm, name): [0.7, 0.71, 0.72] for arm in ("dqn", "gram", "norm (matched)") for name in names}
    values |= {("gram (0.082)", name): [0.3, 0.31, 0.32] for name in names} | {("norm (matched)", measure): matched}
    measures(tmp_path / "atari/measures.csv", values, agent_steps=1_000_000)
    setting = {"cross_term": ": cross", "std_sum": ": variance", "feature_norm": ": norm"}.get(measure, "")
    assert judged(claim, tmp_path, f"Seaquest, 4M frames, MinAtar's κ{setting}").verdict == expected


def test_the_page_says_which_tables_it_reads_and_what_they_still_lack(tmp_path):
    scores(tmp_path / "atari/scores.csv", FOUR | {"norm (matched)": 0.3}, games=4, frames=4_000_000)
    written = page([judge(CLAIMS[name], Tables(tmp_path)) for name in ("forty-of-49", "median-score")])
    readers = "[forty-of-49](#forty-of-49), [median-score](#median-score)"
    assert f"| `results/atari/scores.csv` | there | {readers} | 49 Atari games, 20M frames |" in written
    lacking = "| `results/minatar/scores.csv` | awaited | [forty-of-49](#forty-of-49) | five MinAtar games, 1M frames |"
    assert lacking in written


def test_a_table_that_has_all_its_runs_awaits_none(tmp_path):
    scores(tmp_path / "atari/scores.csv", {"gram": 0.6, "decor": 0.6}, seeds=3)
    scores(tmp_path / "minatar/scores.csv", {"gram": 0.6, "decor": 0.6}, games=5, frames=1_000_000)
    written = page([judge(CLAIMS["gram-scores-like-decor"], Tables(tmp_path))])
    reader = "[gram-scores-like-decor](#gram-scores-like-decor)"
    for name in ("atari", "minatar"):
        assert f"| `results/{name}/scores.csv` | there | {reader} | – |" in written


def test_two_arms_of_the_same_seeds_are_compared_by_pairs(tmp_path):
    pairs = {"dqn": [0.5, 0.6, 0.7], "gram": [0.41, 0.5, 0.59], "norm": [0.8, 0.9, 1.0]}
    measures(tmp_path / "atari/measures.csv", {(arm, "sparsity"): values for arm, values in pairs.items()})
    found = dict(judged("denser-features", tmp_path).numbers)
    assert found["sparsity with the penalty less that without"] == "−0.100 [−0.125, −0.075]"


def overview(claim, folder):
    """What is judged and its verdict, for each row of the overview."""
    written = page([judge(CLAIMS[claim], Tables(folder))])
    table = written.partition("## Overview")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith(("| [", "| ↳"))]
    return [(judged.strip(), verdict) for judged, verdict, _ in rows]


def summary(claim, folder):
    """The lines at the top of a claim's section that have the verdicts of smaller settings."""
    section = page([judge(CLAIMS[claim], Tables(folder))]).partition(f"{{ #{claim} }}")[2]
    return [line for line in section.partition("*The paper*")[0].splitlines() if line]


def test_the_verdicts_of_smaller_settings_stand_below_the_claim_and_at_the_top_of_its_section(tmp_path):
    values = DENSER | {("norm (matched)", "sparsity"): [0.7, 0.71, 0.69]}
    values |= {("gram (0.082)", "sparsity"): values.pop(("gram:1", "sparsity"))}
    measures(tmp_path / "atari/measures.csv", values, agent_steps=1_000_000)
    minatar_sparsity(tmp_path, {"dqn": [0.7, 0.71, 0.72], "gram": [0.3, 0.31, 0.32], "norm (matched)": [0.3, 0.3, 0.3]})
    assert overview("denser-features", tmp_path) == [
        ("[Features are denser with the penalty](#denser-features)", "**not run in full**"),
        ("↳ Seaquest, 4M frames, MinAtar's κ", "*reproduced*"),
        ("↳ MinAtar Seaquest, 1M frames", "*confounded*"),
    ]
    assert summary("denser-features", tmp_path) == [
        "**Not run in full.** In smaller settings, which do not count for that verdict:",
        "- **reproduced**: Seaquest, 4M frames, MinAtar's κ",
        "- **confounded**: MinAtar Seaquest, 1M frames",
    ]


def test_a_summary_names_what_of_a_setting_has_a_verdict_where_not_all_of_it_has_the_same(tmp_path):
    shares = {
        ("dqn", "growth_share_feature_norm"): [0.8, 0.82, 0.81],
        ("dqn", "growth_share_td_error"): [0.47, 0.5, 0.53],
    }
    measures(tmp_path / "atari/measures.csv", shares, agent_steps=1_000_000)
    assert summary("gradient-growth", tmp_path)[1:] == [
        "- **reproduced**: Seaquest, 4M frames (“mainly the norm”)",
        "- **undecided**: Seaquest, 4M frames (“not the TD error”)",
    ]


def test_a_smaller_setting_without_runs_enough_has_no_row_in_the_overview(tmp_path):
    sparse = {key: found[:2] for key, found in DENSER.items()}
    measures(tmp_path / "representation/measures.csv", sparse, game="minatar/breakout", agent_steps=100_000)
    assert overview("denser-features", tmp_path) == [
        ("[Features are denser with the penalty](#denser-features)", "**not run in full**")
    ]


PAIRED = {
    ("asterix", "dqn"): [1.0, 5.0, 9.0, 30.0], ("asterix", "gram"): [2.0, 6.0, 8.0, 33.0],
    ("pong", "dqn"): [-3.0, 0.0, 4.0, 2.0], ("pong", "gram"): [-2.0, 0.0, 3.0, 1.0],
}  # fmt: skip
"""Scores by seed: DQN-Gram wins three pairs of four in one game; in the other one of four, and ties in one."""


def score_rows(path, values, areas=None):
    """A ``scores.csv`` of the values of each game and arm by seed; None is a run that is not there."""
    run = {"state": "done", "frames": 100, "random": -10.0}
    rows = [
        {"game": game, "arm": arm, "seed": seed, "final_score": value, "human_normalised": value}
        | {"auc": areas[game, arm][seed] if areas else value}
        | run
        for (game, arm), found in values.items()
        for seed, value in enumerate(found)
        if value is not None
    ]
    write(path, rows)


def compared(folder, values, statistic):
    score_rows(folder / "scores.csv", values)
    return compare("scores.csv", "gram", "dqn", statistic).number(Tables(folder))


@pytest.mark.parametrize("statistic", ["improvement", "area_improvement"])
@pytest.mark.parametrize("seeds", [3, 4])  # a seed that both arms lack leaves pairs
def test_scores_of_the_same_seeds_are_compared_by_pairs(statistic, seeds, tmp_path):
    short = {key: [*values[:seeds], None] if key[0] == "pong" else values for key, values in PAIRED.items()}
    found = compared(tmp_path, short, statistic)
    assert (found.value, found.note) == ((3 / 4 + 1.5 / seeds) / 2, "")


def test_seeds_are_drawn_for_both_arms_together(tmp_path):
    ahead = {(game, arm): [v + (arm == "gram") for v in PAIRED[game, "dqn"]] for game, arm in PAIRED}
    for statistic in ("improvement", "games_won", "median"):
        found = compared(tmp_path, ahead, statistic)
        assert (found.value, found.low, found.high) == pytest.approx((1, 1, 1))


def test_a_share_that_no_draw_changes_says_why_it_has_no_interval(tmp_path):
    ahead = {(game, arm): [v + (arm == "gram") for v in PAIRED[game, "dqn"]] for game, arm in PAIRED}
    assert str(compared(tmp_path, ahead, "improvement")) == "1 (the same in every resample)"
    unpaired = ahead | {("pong", "gram"): [99.0, None, 99.0, 99.0], ("asterix", "gram"): [99.0] * 4}
    assert str(compared(tmp_path, unpaired, "improvement")) == "1 (unpaired; the same in every resample)"
    assert str(compared(tmp_path, PAIRED, "improvement")).endswith("]")


def test_the_interval_of_pairs_is_that_of_a_bootstrap_written_out(tmp_path):
    generator, shares = np.random.default_rng(1), []
    for _ in range(2000):
        drawn = [(game, generator.integers(0, 4, 4)) for game in ("asterix", "pong")]
        pairs = [[np.array(PAIRED[game, arm])[seeds] for arm in ("gram", "dqn")] for game, seeds in drawn]
        shares.append(np.mean([((ours > theirs) + 0.5 * (ours == theirs)).mean() for ours, theirs in pairs]))
    found = compared(tmp_path, PAIRED, "improvement")
    assert (found.low, found.high) == pytest.approx(np.percentile(shares, [2.5, 97.5]), abs=0.0626)  # one step: 1/16


def test_scores_of_other_seeds_are_compared_without_pairs_and_say_so(tmp_path):
    short = PAIRED | {("pong", "gram"): [-2.0, None, 3.0, 1.0]}
    found = compared(tmp_path, short, "improvement")
    asterix = np.mean([a > b for a in PAIRED["asterix", "gram"] for b in PAIRED["asterix", "dqn"]])
    pong = np.mean([a > b for a in (-2.0, 3.0, 1.0) for b in PAIRED["pong", "dqn"]])
    assert found.value == pytest.approx((asterix + pong) / 2)
    assert str(found).endswith("] (unpaired)")


def test_a_game_of_a_single_seed_leaves_no_interval(tmp_path):
    single = {key: values[:1] if key[0] == "pong" else values for key, values in PAIRED.items()}
    for statistic in ("improvement", "games_won", "median"):
        assert str(compared(tmp_path, single, statistic)).endswith(" (no interval)")


def by_size(arm, other, learned):
    """Mean difference of pairs in percent of what is learned in a game, and Student's interval, written out."""
    means, squares, freedoms = [], [], []
    for game in learned:
        pairs = zip(arm[game], other[game], strict=True)
        percent = [100 * (ours - theirs) / learned[game] for ours, theirs in pairs if None not in (ours, theirs)]
        seeds, mean = len(percent), sum(percent) / len(percent)
        means.append(mean)
        squares.append(sum((one - mean) ** 2 for one in percent) / (seeds - 1) / seeds)
        freedoms.append(seeds - 1)
    mean, error = sum(means) / len(means), sum(squares) ** 0.5 / len(means)
    freedom = sum(squares) ** 2 / sum(square**2 / own for square, own in zip(squares, freedoms, strict=True))
    half = scipy.stats.t.ppf(0.975, freedom) * error
    return mean, mean - half, mean + half


def three_arms(seed, games=("asterix", "pong", "qbert"), seeds=4):
    """Scores and areas by game and arm; random play has -10."""
    generator = np.random.default_rng(seed)
    keys = [(game, arm) for game in games for arm in ("dqn", "gram", "norm")]
    return [{key: list(generator.uniform(-9, 50, seeds)) for key in keys} for _ in range(2)]


def of_arm(values, arm):
    return {game: found for (game, name), found in values.items() if name == arm}


def learned_by(dqn):
    return {game: np.mean([score for score in found if score is not None]) + 10 for game, found in dqn.items()}


def written(number):
    return number.value, number.low, number.high


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("other", ["norm", "dqn"])
def test_differences_are_in_percent_of_what_dqn_learns_with_students_interval(seed, other, tmp_path):
    final, area = three_arms(seed)
    score_rows(tmp_path / "scores.csv", final, area)
    learned = learned_by(of_arm(final, "dqn"))
    for statistic, values in (("difference", final), ("area_difference", area)):
        found = compare("scores.csv", "gram", other, statistic).number(Tables(tmp_path))
        assert written(found) == pytest.approx(by_size(of_arm(values, "gram"), of_arm(values, other), learned))
        assert not found.note


def test_a_difference_is_of_the_seeds_that_both_arms_have_and_says_so(tmp_path):
    final, _ = three_arms(0)
    final["pong", "gram"][1] = final["qbert", "norm"][0] = final["pong", "dqn"][2] = None
    score_rows(tmp_path / "scores.csv", final)
    found = compare("scores.csv", "gram", "norm", "difference").number(Tables(tmp_path))
    learned = learned_by(of_arm(final, "dqn"))
    assert written(found) == pytest.approx(by_size(of_arm(final, "gram"), of_arm(final, "norm"), learned))
    assert str(found).endswith("] (of the seeds that both have)")


def test_a_game_of_one_pair_leaves_a_difference_without_an_interval(tmp_path):
    final, _ = three_arms(0)
    final["pong", "gram"][1:] = [None] * 3
    score_rows(tmp_path / "scores.csv", final)
    found = compare("scores.csv", "gram", "norm", "difference").number(Tables(tmp_path))
    assert str(found).endswith(" (no interval) (of the seeds that both have)")


def test_there_is_no_difference_in_percent_of_what_is_not_learned(tmp_path):
    final, _ = three_arms(0)
    final["pong", "dqn"] = [-10.0] * 4
    score_rows(tmp_path / "scores.csv", final)
    assert str(compare("scores.csv", "gram", "norm", "difference").number(Tables(tmp_path))) == "–"
    score_rows(tmp_path / "scores.csv", {key: found for key, found in final.items() if key[1] != "dqn"})
    with pytest.raises(MissingRowsError, match="has no runs of dqn"):
        compare("scores.csv", "gram", "norm", "difference").number(Tables(tmp_path))


def test_an_unknown_statistic_is_named(tmp_path):
    score_rows(tmp_path / "scores.csv", PAIRED)
    with pytest.raises(UserError, match="unknown statistic 'diference'; did you mean 'difference'"):
        compare("scores.csv", "gram", "dqn", "diference").number(Tables(tmp_path))


@pytest.mark.parametrize(
    ("setting", "table", "arms"),
    [
        ("four Atari games, 4M frames, the author's κ", "atari", {"gram": 0.4, "gram (0.082)": 0.9}),
        ("four Atari games, 4M frames, MinAtar's κ", "atari", {"gram": 0.9, "gram (0.082)": 0.4}),
        ("five MinAtar games, 1M frames", "minatar", {"gram": 0.4, "norm": 0.1}),
    ],
)
def test_how_much_pairs_are_won_by_stands_beside_the_share_of_them(setting, table, arms, tmp_path):
    # DQN learns 0.2: its seeds have 0, 0.01 and 0.02 more
    means = {"dqn": 0.19, "norm (matched)": 0.3, "norm (0.1)": 0.2} | arms
    expected = {"that of DQN,": 105, "`norm (0.1)`": 100, "`norm (matched)`": 50, "`norm` at equal": 50}
    scores(tmp_path / f"{table}/scores.csv", means, games=5, frames=4_000_000)
    found = {label: value for label, value in judged("forty-of-49", tmp_path, setting).numbers if "in percent" in label}
    assert len(found) == {"atari": 6, "minatar": 4}[table]
    for label, value in found.items():
        (wanted,) = [percent for name, percent in expected.items() if name in label]
        assert float(value.split()[0]) == pytest.approx(wanted), label
