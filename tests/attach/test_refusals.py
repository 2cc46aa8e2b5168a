"""What `attach` refuses, in one clear line."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from gramian.attach import attach
from tests.attach.hosts import (
    batch,
    network,
)

REFUSED = [
    ({}, TypeError, "exactly one of kappa, ratio and penalties, got none"),
    ({"kappa": 1.0, "ratio": 0.1}, TypeError, "exactly one .* got kappa and ratio"),
    ({"penalties": {"gram": 1.0}, "penalty": "gram"}, TypeError, "leave penalty out"),
    ({"penalties": ["gram"]}, TypeError, "must be a dict"),
    ({"penalties": {"gram": -1.0}}, ValueError, "kappa of gram must be finite and at least 0"),
    ({"ratio": 0.1}, ValueError, "ratio needs inject=True"),
    ({"ratio": -0.1, "inject": True}, ValueError, "ratio must be finite"),
    ({"ratio": 0.1, "inject": True, "penalty": "orthogonality"}, ValueError, "so give kappa"),
    ({"kappa": 1.0, "penalty": "orthogonality", "on": "input"}, ValueError, "cannot be put on on='input'"),
    ({"kappa": 1.0, "penalty": "dr3"}, ValueError, "add gramian.dr3_penalty to the loss"),
    ({"kappa": 1.0, "penalty": 3}, TypeError, "or a function, not a int"),
    ({"kappa": 1.0, "penalty": "vicreg", "mask": torch.ones(6)}, ValueError, "'vicreg' takes no mask"),
    ({"kappa": 1.0, "on": "inside"}, ValueError, "on must be 'output' or 'input', not 'inside'"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_impossible_combinations_are_refused(options, error, message) -> None:
    net = network()
    with pytest.raises(error, match=message):
        attach(net[0], **options)
    assert not net[0]._forward_hooks


def test_the_weights_of_a_module_without_any_cannot_be_penalised() -> None:
    with pytest.raises(ValueError, match="cannot be put on a ReLU without any"):
        attach(nn.ReLU(), kappa=1.0, penalty="orthogonality")


def test_a_function_has_to_return_a_scalar() -> None:
    net = network()
    attach(net[0], kappa=1.0, penalty=lambda x: x.square().sum(0), inject=True)
    with pytest.raises(ValueError, match=r"must return a scalar, not a tensor of shape \[8\]"):
        net(batch())


class TestRefusals:
    @pytest.mark.parametrize(
        ("kappa", "error"),
        [
            (-1, ValueError),
            (math.nan, ValueError),
            (math.inf, ValueError),
            ("1", TypeError),
            (True, TypeError),
        ],
    )
    def test_a_kappa_that_is_no_coefficient(self, kappa, error) -> None:
        with pytest.raises(error, match="kappa must be"):
            attach(network()[0], kappa=kappa)
        reg = attach(network()[0], kappa=1.0)
        with pytest.raises(error, match="kappa must be"):
            reg.kappa = kappa
        assert reg.kappa == 1.0

    def test_numbers_of_numpy_are_numbers(self) -> None:
        assert attach(network()[0], kappa=np.float32(0.5)).kappa == 0.5

    def test_an_unknown_penalty_is_answered_with_the_nearest(self) -> None:
        with pytest.raises(ValueError, match=r"unknown penalty 'gramm'; did you mean 'gram'\?"):
            attach(network()[0], kappa=1.0, penalty="gramm")

    def test_something_that_is_no_module(self) -> None:
        with pytest.raises(TypeError, match="not function"):
            attach(lambda x: x, kappa=1.0)  # type: ignore[arg-type]

    @pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
    def test_a_torchscript_module(self) -> None:
        with pytest.raises(TypeError, match="TorchScript"):
            attach(torch.jit.trace(network(), batch()), kappa=1.0)

    def test_an_output_that_is_no_tensor(self) -> None:
        host = nn.LSTM(5, 8)
        attach(host, kappa=1.0)
        with pytest.raises(TypeError, match="LSTM put out a tuple"):
            host(batch(dtype=torch.float32))

    def test_an_output_of_three_axes(self) -> None:
        host = nn.Linear(5, 8)
        attach(host, kappa=1.0)
        with pytest.raises(ValueError, match=r"Linear put out \[2, 3, 8\]"):
            host(torch.zeros(2, 3, 5))

    def test_a_refused_attachment_leaves_no_hook(self) -> None:
        net = network()
        with pytest.raises(ValueError, match="scale must be finite"):
            attach(net[0], kappa=1.0, inject=True, scale=math.nan)
        assert not net[0]._forward_hooks
