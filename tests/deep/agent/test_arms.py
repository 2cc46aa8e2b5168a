import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from gramian.core.arms import KINDS, PENALTIES, PLAIN, combined
from gramian.core.errors import UserError
from gramian.deep.agent.arms import Arm, Arms, parse_arm
from gramian.deep.agent.learner import LearnerConfig
from gramian.deep.agent.penalty_gradients import CLOSED_FORMS
from gramian.deep.agent.streams import Stream, bits
from gramian.penalties import penalty_function
from tests.deep.naive import naive_penalty
from tests.deep.populations import CENTRABLE, EVERY_ARM, SPECS, alone_and_among_others


def features(population, seed=0, samples=6):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(population, samples, 4, generator=generator, dtype=torch.float64).relu()


def test_penalties_of_a_mixed_population_equal_their_definitions():
    here, there = features(len(EVERY_ARM)), features(len(EVERY_ARM), seed=1)
    penalties = Arms(EVERY_ARM, dtype=torch.float64).penalties(here, lambda group: group.select(there))
    for run, arm in enumerate(EVERY_ARM):
        expected = sum(
            term.kappa / arm.kappa * naive_penalty(term.kind, here[run], there[run], term.centered)
            for term in arm.active
        )
        torch.testing.assert_close(penalties[run].item(), float(expected), rtol=1e-12, atol=1e-12)


def test_runs_with_one_penalty_are_one_group_wherever_they_stand():
    arms = Arms([Arm("gram", 0.1), Arm("dqn"), Arm("gram", 0.2), Arm("gram", 0.1, centered=False), Arm("gram", 0.0)])
    assert [group.runs.tolist() for group in arms.groups] == [[0, 2], [3]]
    assert arms.kappas.tolist() == pytest.approx([0.1, 0.0, 0.2, 0.1, 0.0])


@pytest.mark.parametrize("kind", KINDS)
def test_kappa_zero_belongs_to_no_group(kind):
    assert Arms([Arm(kind, 0.0)]).groups == ()


def test_kappa_zero_never_meets_a_penalty_that_is_not_finite():
    infinite = torch.full((2, 6, 4), torch.inf)
    penalties = Arms([Arm("gram", 0.0), Arm("gram", 1.0)]).penalties(infinite)
    assert penalties[0] == 0
    assert penalties[1].isnan()


def test_the_next_features_are_asked_for_by_dr3_alone():
    def never(group):
        raise AssertionError(group)

    Arms([arm for arm in EVERY_ARM if arm.kind != "dr3"]).penalties(features(len(EVERY_ARM) - 1), never)
    with pytest.raises(ValueError, match="next states"):
        Arms([Arm("dr3", 0.1)]).penalties(features(1))


def test_dr3_has_a_gradient_through_both_states():
    here, there = features(1).requires_grad_(), features(1, seed=1).requires_grad_()
    penalty = Arms([Arm("dr3", 1.0)], dtype=torch.float64).penalties(here, lambda _: there)
    slopes = torch.autograd.grad(penalty.sum(), [here, there])
    torch.testing.assert_close(slopes[0], there.detach() / 6)
    torch.testing.assert_close(slopes[1], here.detach() / 6)


@given(
    kind=st.sampled_from(KINDS),
    kappa=st.floats(0, 1e9, allow_subnormal=False),
    centered=st.booleans(),
)
def test_an_arm_reads_back_from_its_text(kind, kappa, centered):
    arm = Arm(kind, 0.0 if kind == "dqn" else kappa, centered)
    assert parse_arm(str(arm), default_kappa=123.0) == arm
    if kind not in ("dqn", "decor"):
        both = combined([arm, Arm("decor", kappa)])
        assert parse_arm(str(both), default_kappa=123.0) == both


@pytest.mark.parametrize(
    ("text", "arm"),
    [
        ("dqn", Arm("dqn")),
        ("none", Arm("dqn")),
        ("gram", Arm("gram", 10.24)),
        ("GRAM", Arm("gram", 10.24)),
        ("gram:0.1", Arm("gram", 0.1)),
        ("gram:1e-3:uncentered", Arm("gram", 1e-3, centered=False)),
        ("gram-unbiased:uncentered", Arm("gram-unbiased", 10.24, centered=False)),
        ("cross:centered:2", Arm("cross", 2.0)),
        ("l2:0", Arm("l2", 0.0)),
        ("gram:1e+20", Arm("gram", 1e20)),
        ("norm:1e+20+gram:uncentered", combined([Arm("gram", 10.24, centered=False), Arm("norm", 1e20)])),
    ],
)
def test_arms_on_the_command_line(text, arm):
    assert parse_arm(text, default_kappa=10.24) == arm


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gran", "unknown arm 'gran'; did you mean 'gram'?"),
        (
            "",
            "unknown arm ''; choose from correlation, cross, decor, dqn, dr3, gram, gram-permuted, gram-unbiased, "
            "isotropy, l2, norm, sigreg, vicreg",
        ),
        ("gram:x", "kappa 'x' in arm 'gram:x' is not a number; write for instance gram:0.1"),
        ("gram:-1", "kappa of arm 'gram' is -1.0; it must be a finite number, 0 or more"),
        ("gram:nan", "kappa of arm 'gram' is nan; it must be a finite number, 0 or more"),
        ("gram:1:2", "cannot read '2' in arm 'gram:1:2'; write KIND:KAPPA:uncentered, as in gram:0.1"),
        ("gram:centered:uncentered", "arm 'gram:centered:uncentered' names its centring twice; keep one"),
        ("l2:1:centered", "arm 'l2' has no centring; omit 'centered' in 'l2:1:centered'"),
        ("gram:1+gram:2", "'gram' stands twice in a combination; keep one"),
        ("gram:1+none", "'dqn' has no penalty to combine with others; omit it"),
        ("gram:1+nrm", "unknown arm 'nrm'; did you mean 'norm'?"),
        ("dqn:1", "arm 'dqn' has no penalty, so its kappa cannot be 1.0; choose 'gram'"),
    ],
)
def test_an_arm_that_cannot_be_is_an_error(text, message):
    with pytest.raises(UserError) as error:
        parse_arm(text, default_kappa=10.24)
    assert str(error.value) == message


@pytest.mark.parametrize("arm", [arm for arm in EVERY_ARM if arm.kind in CENTRABLE], ids=str)
def test_the_smallest_batch_of_an_arm_works_and_a_smaller_one_does_not(arm):
    arms = Arms([arm], dtype=torch.float64)
    assert arms.penalties(features(1, samples=arm.minimum_batch_size)).isfinite().all()
    with pytest.raises(ValueError, match="at least"):
        arms.penalties(features(1, samples=arm.minimum_batch_size - 1))


def test_every_penalty_has_its_function_and_its_closed_form_is_of_one():
    assert {kind for kind in KINDS if kind != PLAIN} == set(PENALTIES) >= set(CLOSED_FORMS)
    assert all(callable(penalty_function(kind)) for kind in PENALTIES)


@pytest.mark.parametrize("kind", [kind for kind, penalty in PENALTIES.items() if penalty.noise])
class TestNoise:
    def test_is_of_the_run_and_of_its_update_alone(self, kind):
        x, arms = features(3, samples=8), [Arm(kind, 1.0), Arm("gram", 1.0), Arm(kind, 1.0)]
        counter = torch.tensor([[4], [4], [9]])
        together = Arms(arms, [5, 6, 7], dtype=torch.float64).penalties(x, counter=counter)
        alone = Arms(arms[2:], [7], dtype=torch.float64).penalties(x[2:], counter=counter[2:])
        later = Arms(arms[2:], [7], dtype=torch.float64).penalties(x[2:], counter=counter[2:] + 1)
        assert together[2] == alone[0] != later[0]

    def test_a_run_learns_the_same_alone_and_among_others(self, kind):
        arms = [Arm(kind, 0.3), Arm("dqn"), Arm(kind, 0.1)]
        for alone, together in alone_and_among_others(SPECS["mlp"], LearnerConfig(learning_rate=1e-2), arms, 5, 8):
            assert torch.equal(alone, together)


def test_permuted_features_are_those_of_the_stream():
    x = features(1, samples=8)
    penalty = Arms([Arm("gram-permuted", 1.0)], [3], dtype=torch.float64).penalties(x, counter=5)
    keys = bits(3, Stream.PENALTY, 5, np.arange(8)[:, None], np.arange(4))
    permuted = torch.from_numpy(np.take_along_axis(x[0].numpy(), np.argsort(keys, axis=0), axis=0))
    torch.testing.assert_close(penalty[0], naive_penalty("gram", permuted, None, True))


def test_a_combination_is_the_sum_of_its_penalties_each_with_its_kappa():
    arms = [parse_arm("gram:0.3+norm:0.2", 1.0), Arm("norm", 0.4), parse_arm("l2:0.5+dr3:0.1+gram:0", 1.0)]
    here, there = features(3), features(3, seed=1)
    found = Arms(arms, dtype=torch.float64)
    penalties = found.kappas * found.penalties(here, lambda group: group.select(there))

    def naive(kind, run):
        return float(naive_penalty(kind, here[run], there[run], kind in CENTRABLE))

    expected = [
        0.3 * naive("gram", 0) + 0.2 * naive("norm", 0),
        0.4 * naive("norm", 1),
        0.5 * naive("l2", 2) + 0.1 * naive("dr3", 2),
    ]
    assert penalties.tolist() == pytest.approx(expected, rel=1e-12)


def test_a_term_with_kappa_zero_changes_no_bit():
    infinite = torch.cat([features(1), features(1) * torch.inf])
    alone, beside = (
        Arms([parse_arm(text, 1.0), Arm("none")], dtype=torch.float64).surrogates(infinite)
        for text in ("gram:0.3", "gram:0.3+norm:0")
    )
    assert all(torch.equal(first, second) for first, second in zip(alone, beside, strict=True))
    assert Arms([parse_arm("gram:0+norm:0", 1.0)]).groups == ()
