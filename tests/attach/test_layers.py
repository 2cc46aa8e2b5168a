"""Which line `gramian.layers` marks, and that it leaves the model alone."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import relu

import gramian


class Functional(nn.Module):
    """A host with ``F.relu``: its features are the output of no module."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = relu(self.body(x))
        return self.head(features), self.value(features)


class OfDict(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Dropout(), nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x: dict[str, Tensor]) -> Tensor:
        return self.net(x["observation"]).argmax(1)


MARK = '<- last hidden features: gramian.attach(model{}, ..., on="input")'
X = torch.zeros(32, 4)
CASES = {
    "two heads": (Functional(), X, {".head", ".value"}),
    "no way back from the output": (OfDict(), {"observation": np.zeros((32, 4), np.float32)}, {".net[3]"}),
    "two arguments": (nn.Bilinear(4, 3, 2), (X, torch.zeros(32, 3)), set()),
}


@pytest.mark.parametrize("case", CASES)
def test_it_marks_the_layers_that_the_outputs_come_from(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    model, example, marked = CASES[case]
    gramian.layers(model, example)
    lines = capsys.readouterr().out.splitlines()
    assert {line[line.index("<-") :] for line in lines if "<-" in line} == {MARK.format(path) for path in marked}


def test_shapes_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    gramian.layers(Functional(), X)
    assert capsys.readouterr().out.splitlines()[1].split(maxsplit=2) == ["body", "Linear", "[32, 4]  [32, 8]"]


def test_the_model_and_the_random_numbers_are_left_as_they_were() -> None:
    model = OfDict().train()
    model.net[2].eval()
    before = torch.get_rng_state()
    gramian.layers(model, {"observation": X})
    assert torch.equal(torch.get_rng_state(), before)
    assert [part.training for part in model.net] == [True, True, False, True]
    assert not any(part._forward_hooks for part in model.modules())


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"not int; with SB3 it is model\.policy"):
        gramian.layers(3, X)
