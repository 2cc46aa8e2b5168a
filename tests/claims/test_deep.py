"""Claims on deep runs fill themselves in when ``results/`` gets the tables of the runs."""

import pytest

from gramian.claims import Tables, details, judge, page
from gramian.core.errors import UserError
from gramian.report import Options, build
from gramian.study.store import write_import
from tests.claims.made import CLAIMS, PARTS, Made, features, judged, measures, scores

ATARI, MINATAR = "atari/scores.csv", "minatar/scores.csv"
FOUR_AUTHOR = "four Atari games, 4M frames, the author's κ"
FOUR_MINATAR = "four Atari games, 4M frames, MinAtar's κ"
GOOD = {"dqn": 0.2, "gram": 0.6, "norm": 0.3}
FOUR = {"dqn": 0.2, "gram": 0.1, "gram (0.082)": 0.6}
SHORT = {"games": 4, "frames": 4_000_000}
ON_MINATAR = {"games": 5, "frames": 1_000_000}


def of_scores(name, means, **sizes):
    return Made().put(name, scores(means, **sizes))


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
def test_scores_are_judged_against_dqn_and_the_control(claim, means, expected):
    assert judged(claim, of_scores(ATARI, means)).verdict == expected


@pytest.mark.parametrize(
    ("decor", "shifts", "expected"),
    [
        (0.6, {}, "reproduced"),
        (0.3, {}, "not reproduced"),
        (0.6, {0: 0.5, 2: 0.7}, "undecided"),  # each wins a pair of each game, and they tie in the third
    ],
)
def test_equivalence_takes_an_interval_within_the_margin(decor, shifts, expected):
    tables = of_scores(MINATAR, {"gram": 0.6, "decor": decor}, seeds=3 if shifts else 10, **ON_MINATAR)
    for seed, score in shifts.items():
        tables.edit(MINATAR, {"arm": "gram", "seed": seed}, final_score=str(score))
    found = judged("gram-scores-like-decor", tables, "five MinAtar")
    assert found.verdict == expected
    assert found.reason.endswith(", and the interval reaches out of that") == (expected == "undecided")


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
def test_runs_of_fewer_games_or_frames_give_no_numbers_and_all_that_is_lacking_is_named(short, reason):
    found = judged("median-score", of_scores(ATARI, GOOD, **short))
    assert (found.verdict, found.reason, found.numbers) == ("not run in full", reason, [])


def test_runs_of_fewer_agent_steps_give_no_numbers():
    short = measures({key: found[:2] for key, found in DENSER.items()}, agent_steps=1_000_000)
    found = judged("denser-features", Made().put("atari/measures.csv", short), "Seaquest, 20M")
    assert found.reason == "2 seeds, where a verdict takes 3; 1,000,000 agent steps, where it takes 4,500,000"
    assert not found.numbers


def test_too_few_seeds_give_preliminary_numbers_and_no_verdict():
    tables = of_scores(ATARI, GOOD, seeds=2)
    found = judged("median-score", tables)
    assert (found.verdict, found.reason) == ("not run in full", "2 seeds, where a verdict takes 3")
    assert found.numbers[0][0] == "median of DQN-Gram minus that of DQN"
    assert found.numbers[0][1].startswith("0.4")
    assert "takes 3. The numbers are preliminary." in details([judge(CLAIMS["median-score"], tables)])


@pytest.mark.parametrize(("frames", "shown"), [(3_600_000, True), (3_500_000, False)])  # a verdict takes 3,900,000
def test_nearly_as_many_frames_give_preliminary_numbers_and_no_verdict(frames, shown):
    arms = {"dqn": 0.2, "gram (0.082)": 0.6, "norm (matched)": 0.3}
    found = judged("median-score", of_scores(ATARI, arms, games=4, frames=frames), FOUR_MINATAR)
    assert found.verdict == "not run in full"
    assert found.reason.endswith("3,900,000")
    assert bool(found.numbers) == shown


def test_a_setting_that_names_its_games_and_frames_needs_as_many():
    for part in PARTS:
        assert ("frames" in part.setting) == ("frames" in part.needs), part.setting
        assert ("games" in part.setting) == ("games" in part.needs), part.setting


def test_a_run_without_a_score_is_none_of_the_seeds_behind_a_verdict():
    tables = of_scores(ATARI, GOOD).edit(ATARI, {"arm": "gram", "game": "game7", "seed": 2}, human_normalised="")
    assert judged("median-score", tables).reason == "2 seeds, where a verdict takes 3"


def test_a_claim_is_not_yet_run_where_no_setting_has_a_table_and_not_run_in_full_where_one_has():
    claim, tables = CLAIMS["gram-scores-like-decor"], Made()
    assert judge(claim, tables).verdict == "not yet run"
    tables.put(MINATAR, scores({"gram": 0.6, "decor": 0.6}, **ON_MINATAR))
    entry = judge(claim, tables)
    assert (entry.verdict, entry.decisive.reason) == ("not run in full", "awaits `results/atari/scores.csv`")
    entry = judge(claim, tables.put(ATARI, scores({"dqn": 0.2, "gram": 0.6}, games=4)))
    assert (entry.verdict, entry.decisive.reason) == (
        "not run in full",
        "the table 'atari/scores.csv' has no runs of decor",
    )


def test_smaller_settings_do_not_count_for_the_verdict_where_the_papers_was_run():
    tables = of_scores(ATARI, {"gram": 0.6, "decor": 0.6}).put(
        MINATAR, scores({"gram": 0.6, "decor": 0.3}, **ON_MINATAR)
    )
    entry = judge(CLAIMS["gram-scores-like-decor"], tables)
    assert entry.verdict == "reproduced"
    assert [found.verdict for _, found in entry.elsewhere] == ["not reproduced"]


DENSER = {("dqn", "sparsity"): [0.7, 0.71, 0.72], ("gram:1", "sparsity"): [0.3, 0.31, 0.32]}


def of_measures(values, name="atari/measures.csv", **options):
    return Made().put(name, measures(values, **options))


@pytest.mark.parametrize(
    ("control", "expected", "reason"),
    [
        ([0.69, 0.7, 0.71], "reproduced", ""),
        ([0.3, 0.31, 0.32], "confounded", ""),
        (None, "not run in full", "has no runs of norm"),
        ([0.7], "not run in full", "(no interval) (unpaired); a verdict takes a number with its interval"),
        ([0.7, float("nan"), 0.7], "not run in full", "has nan in column value, where a verdict takes a number"),
    ],
)
def test_denser_features_must_not_come_from_shrinking(control, expected, reason):
    values = DENSER | ({("norm", "sparsity"): control} if control else {})
    found = judged("denser-features", of_measures(values))
    assert found.verdict == expected
    assert found.reason.endswith(reason)


@pytest.mark.parametrize("arm", ["dqn", "gram:1"])
def test_a_measure_that_is_no_number_gives_no_verdict(arm):
    values = DENSER | {("norm", "sparsity"): [0.69, 0.7, 0.71], (arm, "sparsity"): [0.5, float("nan"), 0.5]}
    found = judged("denser-features", of_measures(values))
    assert found.verdict == "not run in full"
    assert "has nan in column value, where a verdict takes a number" in found.reason


def test_sparser_features_are_not_denser_with_or_without_the_control():
    swapped = {("dqn", "sparsity"): DENSER["gram:1", "sparsity"], ("gram:1", "sparsity"): DENSER["dqn", "sparsity"]}
    found = judged("denser-features", of_measures(swapped))
    assert found.verdict == "not reproduced"
    assert found.numbers[1][1] == "not run"


@pytest.mark.parametrize(
    ("norm", "td_error", "mainly", "not_the_td_error"),
    [  # shares of the norm and of the TD error, and whether it is mainly the norm and not the TD error
        ([0.8, 0.82, 0.81], [0.1, 0.12, 0.11], "reproduced", "reproduced"),
        ([0.8, 0.82, 0.81], [0.6, 0.62, 0.61], "reproduced", "not reproduced"),
        ([0.8, 0.82, 0.81], [0.47, 0.5, 0.53], "reproduced", "undecided"),
        ([0.8, 0.82, 0.81], [0.82, 0.8, 0.81], "confounded", "not reproduced"),
        ([0.2, 0.22, 0.21], [0.1, 0.12, 0.11], "not reproduced", "reproduced"),
    ],
)
@pytest.mark.parametrize(
    ("table", "setting"),
    [
        ("atari/measures.csv", "Seaquest, 20M frames"),
        ("atari/measures.csv", "Seaquest, 4M frames"),
        ("minatar/features.csv", "MinAtar Seaquest, 1M frames"),
    ],
)
def test_the_norm_and_the_td_error_have_verdicts_of_their_own(table, setting, norm, td_error, mainly, not_the_td_error):
    values = {("dqn", "growth_share_feature_norm"): norm, ("dqn", "growth_share_td_error"): td_error}
    if table == "atari/measures.csv":
        rows = measures(values, agent_steps=5_000_000 if "20M" in setting else 1_000_000)
    else:
        logs = ("head_gradient", "feature_norm", "td_error")
        rows = features(values | {("dqn", f"growth_log_{name}"): [1.0, 1.1, 0.9] for name in logs})
    tables = Made().put(table, rows)
    assert judged("gradient-growth", tables, f"{setting}: mainly").verdict == mainly
    assert judged("gradient-growth", tables, f"{setting}: not").verdict == not_the_td_error


def test_no_effect_but_that_of_the_td_error_is_judged_without_a_control():
    effects = [part for part in PARTS if getattr(part.rule, "claim", "").startswith("; the claim is that it is ")]
    assert {part.setting.partition(": ")[2] for part in effects if part.rule.beyond is None} == {"not the TD error"}


def test_two_coefficients_of_one_penalty_are_refused():
    with pytest.raises(UserError, match="several arms of gram: gram:1, gram:2; keep one"):
        judged("denser-features", of_measures(DENSER | {("gram:2", "sparsity"): [0.3, 0.3, 0.3]}))


@pytest.mark.slow
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
    found = judged("forty-of-49", Tables(tmp_path / "results"), "five MinAtar")
    assert (found.verdict, found.numbers[0][1]) == ("undecided", "1.00 [0.48, 1.00]")
    assert found.numbers[-1] == ("runs behind it", "5 games, 3 seeds, 1,000,000 frames")


PLAYED = {"dqn": [0.7, 0.71, 0.72], "gram": [0.3, 0.31, 0.32], "norm (matched)": [0.7, 0.71, 0.69]}


def minatar_sparsity(played):
    values = {(arm, "sparsity"): found for arm, found in played.items()}
    return of_measures(values, "minatar/measures.csv", game="minatar/seaquest", agent_steps=1_000_000)


@pytest.mark.parametrize(
    ("matched", "expected"), [([0.7, 0.71, 0.69], "reproduced"), ([0.3, 0.31, 0.29], "confounded")]
)
def test_features_of_minatars_seaquest_are_judged_at_equal_norm(matched, expected):
    tables = minatar_sparsity(PLAYED | {"norm (matched)": matched, "norm": [0.7, 0.7, 0.7]})
    found = judged("denser-features", tables, "MinAtar Seaquest")
    assert found.verdict == expected
    assert found.numbers[-1] == ("runs behind it", "one game, 3 seeds, 1,000,000 agent steps")


def test_density_is_judged_by_states_in_play_and_the_held_out_ones_stand_beside_where_there_are_any():
    tables = minatar_sparsity(PLAYED)
    held_out = "sparsity on held-out states with the penalty minus that without"
    alone = judged("denser-features", tables, "MinAtar Seaquest")
    assert (alone.verdict, dict(alone.numbers)[held_out]) == ("reproduced", "–")
    sparser = {"dqn": [0.3, 0.31, 0.32], "gram": [0.7, 0.71, 0.72], "norm (matched)": [0.3, 0.31, 0.29]}
    tables.put("minatar/features.csv", features({(arm, "held_out_sparsity"): v for arm, v in sparser.items()}))
    entry = judge(CLAIMS["denser-features"], tables)
    found = entry.judgements[-1]
    assert found.verdict == "reproduced"
    assert dict(found.numbers)[held_out].startswith("0.4")
    assert "was settled when both numbers were known" in details([entry])


def test_preliminary_numbers_have_the_control_beside_them():
    tables = minatar_sparsity({"dqn": [0.7, 0.72], "gram": [0.3, 0.31], "norm (matched)": [0.3, 0.32]})
    found = judged("denser-features", tables, "MinAtar Seaquest")
    assert (found.verdict, found.reason) == ("not run in full", "2 seeds, where a verdict takes 3")
    assert [label for label, _ in found.numbers[:2]] == [
        "sparsity with the penalty minus that without",
        "sparsity with the penalty minus that of `norm` at equal feature norm",
    ]


@pytest.mark.parametrize(("gram", "expected"), [(0.6, "undecided"), (0.1, "not reproduced")])
def test_areas_of_five_games_cannot_tell_40_of_49_from_half_of_them(gram, expected):
    arms = GOOD | {"gram": gram, "norm (matched)": 0.3}
    entry = judge(CLAIMS["forty-of-49"], of_scores(MINATAR, arms, **ON_MINATAR))
    assert [found.verdict for found in entry.judgements] == ["not yet run"] * 4 + [expected]
    assert entry.verdict == "not run in full"


@pytest.mark.parametrize(
    ("author", "matched", "of_author", "of_minatar"),
    [
        (0.1, 0.3, "not reproduced", "reproduced"),
        (0.4, 0.3, "reproduced", "reproduced"),
        (0.3, 0.3, "confounded", "reproduced"),
        (0.25, 0.3, "confounded", "reproduced"),
        (0.1, 0.6, "not reproduced", "confounded"),
    ],
)
@pytest.mark.parametrize("claim", ["forty-of-49", "median-score"])
def test_the_short_study_of_atari_is_judged_at_both_coefficients(claim, author, matched, of_author, of_minatar):
    tables = of_scores(ATARI, FOUR | {"gram": author, "norm (matched)": matched}, **SHORT)
    if claim == "forty-of-49":  # four of four games may be half of them
        of_author, of_minatar = (one if one == "not reproduced" else "undecided" for one in (of_author, of_minatar))
    found = judged(claim, tables, FOUR_AUTHOR)
    assert found.verdict == of_author
    assert "`norm (matched)`" in found.numbers[1][0]  # whatever the verdict, the control is shown
    assert judged(claim, tables, FOUR_MINATAR).verdict == of_minatar
    assert judged(claim, tables, "49 Atari").verdict == "not run in full"


@pytest.mark.parametrize(
    ("claim", "measure", "aspect"),
    [
        ("denser-features", "sparsity", ""),
        ("falling-terms", "feature_norm", ": norm"),
        ("falling-terms", "cross_term", ": cross"),
        ("falling-terms", "std_sum", ": variance"),
    ],
)
@pytest.mark.parametrize(("matched", "expected"), [([0.6, 0.65, 0.7], "reproduced"), ([0.3, 0.4, 0.5], "confounded")])
def test_features_of_the_short_study_of_atari_are_judged_at_equal_norm(claim, measure, aspect, matched, expected):
    names = ("effective_rank", "mean_abs_correlation", "dormant_share_0.025", measure)
    values = {(arm, name): [0.7, 0.71, 0.72] for arm in ("dqn", "gram", "norm (matched)") for name in names}
    values |= {("gram (0.082)", name): [0.3, 0.31, 0.32] for name in names} | {("norm (matched)", measure): matched}
    tables = of_measures(values, agent_steps=1_000_000)
    assert judged(claim, tables, f"Seaquest, 4M frames, MinAtar's κ{aspect}").verdict == expected


def test_the_page_says_which_tables_it_reads_and_what_they_still_lack():
    tables = of_scores(ATARI, FOUR | {"norm (matched)": 0.3}, **SHORT)
    written = details([judge(CLAIMS[name], tables) for name in ("forty-of-49", "median-score")])
    readers = "[forty-of-49](#forty-of-49), [median-score](#median-score)"
    assert f"| `results/atari/scores.csv` | there | {readers} | 49 Atari games, 20M frames |" in written
    lacking = "| `results/minatar/scores.csv` | awaited | [forty-of-49](#forty-of-49) | five MinAtar games, 1M frames |"
    assert lacking in written


def test_a_table_that_has_all_its_runs_awaits_none():
    both = {"gram": 0.6, "decor": 0.6}
    written = details(
        [judge(CLAIMS["gram-scores-like-decor"], of_scores(ATARI, both).put(MINATAR, scores(both, **ON_MINATAR)))]
    )
    reader = "[gram-scores-like-decor](#gram-scores-like-decor)"
    for name in ("atari", "minatar"):
        assert f"| `results/{name}/scores.csv` | there | {reader} | – |" in written


def test_two_arms_of_the_same_seeds_are_compared_by_pairs():
    pairs = {"dqn": [0.5, 0.6, 0.7], "gram": [0.41, 0.5, 0.59], "norm": [0.8, 0.9, 1.0]}
    found = judged("denser-features", of_measures({(arm, "sparsity"): values for arm, values in pairs.items()}))
    assert dict(found.numbers)["sparsity with the penalty minus that without"] == "−0.100 [−0.125, −0.075]"


def overview(claim, tables):
    """The rows of the table of verdicts."""
    lines = page([judge(CLAIMS[claim], tables)], "details.md").splitlines()
    return [tuple(line.strip("| ").split(" | ")) for line in lines if line.startswith(("| [", "| ↳"))]


def test_the_verdicts_of_smaller_settings_stand_below_the_claim_with_their_numbers():
    values = DENSER | {("norm (matched)", "sparsity"): [0.7, 0.71, 0.69]}
    values |= {("gram (0.082)", "sparsity"): values.pop(("gram:1", "sparsity"))}
    tables = minatar_sparsity(PLAYED | {"norm (matched)": [0.3, 0.3, 0.3]})
    tables.put("atari/measures.csv", measures(values, agent_steps=1_000_000))
    claim, atari, minatar = overview("denser-features", tables)
    assert claim[:2] == ("[Features are denser with the penalty](details.md#denser-features)", "**not run in full**")
    assert claim[2] == "the table 'atari/measures.csv' has no runs of gram"
    assert atari[:2] == ("↳ Seaquest, 4M frames, MinAtar's κ", "*reproduced*")
    assert atari[2] == "sparsity with the penalty at MinAtar's κ minus that without: −0.4"
    assert atari[3].startswith("−0.3")
    assert minatar[:2] == ("↳ MinAtar Seaquest, 1M frames", "*confounded*")


def test_a_smaller_setting_without_runs_enough_has_no_row_in_the_overview():
    sparse = {key: found[:2] for key, found in DENSER.items()}
    tables = of_measures(sparse, "representation/measures.csv", game="minatar/breakout", agent_steps=100_000)
    ((title, verdict, _),) = overview("denser-features", tables)
    assert (title.split("]")[0], verdict) == ("[Features are denser with the penalty", "**not run in full**")


@pytest.mark.parametrize(
    ("setting", "table", "arms"),
    [
        (FOUR_AUTHOR, ATARI, {"gram": 0.4, "gram (0.082)": 0.9}),
        (FOUR_MINATAR, ATARI, {"gram": 0.9, "gram (0.082)": 0.4}),
        ("five MinAtar games, 1M frames", MINATAR, {"gram": 0.4, "norm": 0.1}),
    ],
)
def test_by_how_much_the_area_is_larger_stands_beside_the_share_of_games(setting, table, arms):
    # DQN learns 0.2: its seeds have 0, 0.01 and 0.02 more
    means = {"dqn": 0.19, "norm (matched)": 0.3} | arms
    numbers = judged("forty-of-49", of_scores(table, means, games=5, frames=4_000_000), setting).numbers
    of_dqn, of_control = (value for label, value in numbers if "in percent" in label)
    assert float(of_dqn.split()[0]) == pytest.approx(105)
    assert float(of_control.split()[0]) == pytest.approx(50)


def test_one_seed_of_49_games_is_judged_at_its_horizon():
    arms = {"dqn": 0.2, "gram:0.08192": 0.6, "norm:0.24": 0.3}
    tables = of_scores("atari49/scores.csv", arms, seeds=1, frames=4_000_000)
    entry = judge(CLAIMS["forty-of-49"], tables)
    ((part, found),) = entry.elsewhere
    assert (part.setting.split(",")[0], found.verdict, entry.verdict) == (
        "49 Atari games", "reproduced", "not run in full",
    )  # fmt: skip
