"""Penalties that are not one function of the features alone: several, the caller's own, of weights, with noise."""

import pytest
import torch
from torch import Tensor

import gramian
from gramian.attach import attach
from tests.attach.hosts import PENALTIES, assert_equal, assert_same_bits, batch, by_hand, gradients, network, td_loss


def with_penalty(function) -> list[Tensor]:
    """Gradients of the host's loss plus a function of the network and its features: the oracle."""
    net = network()
    features = net[0](batch())
    return gradients(net, td_loss(net[1](features)) + function(net, features))


def attached(inject: bool, **options) -> list[Tensor]:
    net = network()
    reg = attach(net[0], inject=inject, **options)
    loss = td_loss(net(batch()))
    return gradients(net, loss if inject else loss + reg.loss())


def noise_of_the_first_pass(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


CASES = {
    "two penalties": (
        {"penalties": {"gram": 0.5, "norm": 0.25}},
        lambda _, x: 0.5 * gramian.gram_penalty(x) + 0.25 * gramian.norm_penalty(x),
    ),
    "one of two with κ = 0": ({"penalties": {"gram": 0.0, "l2": 0.25}}, lambda _, x: 0.25 * gramian.l2_penalty(x)),
    "a function": ({"kappa": 0.5, "penalty": lambda x: x.abs().mean()}, lambda _, x: 0.5 * x.abs().mean()),
    "weights": (
        {"kappa": 0.5, "penalty": "orthogonality"},
        lambda net, _: 0.5 * gramian.orthogonality_penalty(net[0][0].weight),
    ),
    "features and weights": (
        {"penalties": {"gram": 0.5, "orthogonality": 0.25}},
        lambda net, x: 0.5 * gramian.gram_penalty(x) + 0.25 * gramian.orthogonality_penalty(net[0][0].weight),
    ),
    "sigreg": (
        {"kappa": 0.5, "penalty": "sigreg"},
        lambda _, x: 0.5 * gramian.sigreg_penalty(x, noise_of_the_first_pass(8, 16)),
    ),
    "gram-permuted": (
        {"kappa": 0.5, "penalty": "gram-permuted"},
        lambda _, x: 0.5 * gramian.permuted_gram_penalty(x, noise_of_the_first_pass(6, 8)),
    ),
}


@pytest.mark.parametrize("inject", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_it_adds_the_gradient_of_the_sum(case: str, inject: bool) -> None:
    options, function = CASES[case]
    assert_equal(attached(inject, **options), with_penalty(function))


@pytest.mark.parametrize("inject", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_on_the_input_of_the_head_it_is_what_it_is_on_the_output_of_the_body(penalty: str, inject: bool) -> None:
    net = network()
    reg = attach(net[1], kappa=0.7, penalty=penalty, on="input", inject=inject)
    loss = td_loss(net(batch()))
    assert_equal(gradients(net, loss if inject else loss + reg.loss()), by_hand(0.7, penalty))


def test_the_input_may_be_an_argument_by_name() -> None:
    net = network()
    attach(net[1], kappa=0.7, on="input", inject=True)
    assert_equal(gradients(net, td_loss(net[1](input=net[0](batch())))), by_hand(0.7))


def test_each_penalty_is_measured_before_its_kappa() -> None:
    net = network()
    reg = attach(net[0], penalties={"gram": 0.5, "norm": 0.0})
    net(batch())
    features = net[0](batch()).detach()
    assert list(reg.last.values) == ["gram", "norm"]
    torch.testing.assert_close(reg.last.values["gram"], gramian.gram_penalty(features))
    torch.testing.assert_close(reg.last.values["norm"], gramian.norm_penalty(features))
    torch.testing.assert_close(reg.last.value, sum(reg.last.values.values()))


def test_each_kappa_can_be_changed() -> None:
    net = network()
    reg = attach(net[0], penalties={"gram": 0.5, "norm": 0.25}, inject=True)
    reg.penalties = {"norm": 0.0, "gram": 0.7}
    assert reg.penalties == {"gram": 0.7, "norm": 0.0}
    assert_equal(gradients(net, td_loss(net(batch()))), by_hand(0.7))
    with pytest.raises(RuntimeError, match="several penalties"):
        reg.kappa = 0.1
    with pytest.raises(ValueError, match="penalties are gram, norm; got cross"):
        reg.penalties = {"cross": 0.1}


@pytest.mark.parametrize("penalty", ["sigreg", "gram-permuted"])
def test_noise_is_new_each_time_goes_on_from_a_saved_state_and_leaves_the_host_s_random_numbers(penalty: str) -> None:
    net = network()
    reg = attach(net[0], kappa=0.5, penalty=penalty, inject=True)
    before = torch.get_rng_state()
    values = []
    for place in range(4):
        if place == 2:
            state = reg.state_dict()
        net(batch())
        values.append(float(reg.last.value))
    assert torch.equal(torch.get_rng_state(), before)
    assert len(set(values)) == 4
    other = attach(net[0], kappa=0.5, penalty=penalty)
    other.load_state_dict(state)
    net(batch())
    assert float(other.last.value) == values[2]


class TestMask:
    """Rows of padding: what counts is what would have been without them."""

    KINDS = ("gram", "covariance", "decor", "decorrelation", "norm", "cross", "isotropy", "correlation", "l2")

    @pytest.mark.parametrize("centered", [True, False])
    @pytest.mark.parametrize("penalty", KINDS)
    def test_rows_that_do_not_count_change_nothing(self, penalty: str, centered: bool) -> None:
        rows = torch.tensor([True, False, True, True, False, True])
        x, garbage = batch(), torch.where(rows[:, None], batch(), 50.0)
        plain, net = network(), network()
        counted = PENALTIES[penalty](plain[0](x)[rows], centered=centered)
        reg = attach(net[0], kappa=0.7, penalty=penalty, centered=centered, mask=lambda: rows)
        values = net(garbage)[rows]
        assert_equal(
            gradients(net, td_loss(values) + reg.loss()), gradients(plain, td_loss(plain(x)[rows]) + 0.7 * counted)
        )

    def test_terms_are_those_of_the_rows_that_count(self) -> None:
        rows = torch.tensor([True, False, True, True, False, True])
        net = network()
        reg = attach(net[0], kappa=0.7, mask=rows)
        features = net[0](batch()).detach()[rows]
        torch.testing.assert_close(tuple(reg.last.terms), tuple(gramian.gram_terms(features)))

    def test_without_a_row_that_counts_there_is_no_penalty(self) -> None:
        net = network()
        reg = attach(net[0], kappa=0.7, inject=True)
        reg.mask = torch.zeros(6, dtype=torch.bool)
        assert_equal(gradients(net, td_loss(net(batch()))), by_hand(0.0))

    def test_none_counts_every_row(self) -> None:
        net = network()
        attach(net[0], kappa=0.7, inject=True, mask=lambda: None)
        assert_same_bits(gradients(net, td_loss(net(batch()))), attached(True, kappa=0.7))

    def test_it_has_one_element_for_each_row(self) -> None:
        net = network()
        attach(net[0], kappa=0.7, inject=True, mask=torch.ones(5))
        with pytest.raises(ValueError, match="mask has 5 elements for 6 rows"):
            net(batch())


def test_the_text_names_every_penalty() -> None:
    text = repr(attach(network()[1], penalties={"gram": 0.5, "norm": 0.25}, on="input"))
    assert text.startswith("<gramian.Attachment on the input of Linear: penalty={'gram': 0.5, 'norm': 0.25}, ")
    assert "ratio=0.1, penalty='gram'" in repr(attach(network()[0], ratio=0.1, inject=True))


def test_terms_that_are_not_read_cost_nothing() -> None:
    """The Gram matrix of the terms has n² elements: at n = 16,384 a gigabyte."""
    net = network(dtype=torch.float32)
    reg = attach(net[0], kappa=0.1, penalty="decorrelation")
    seen: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: seen.append(tensor.numel()), lambda _: None):
        net(batch(400, torch.float32))
    assert max(seen) < 400 * 400
    assert reg.last.terms.norm > 0
