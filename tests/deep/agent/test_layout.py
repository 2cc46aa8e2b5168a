import pytest
import torch

from gramian.deep.agent.networks import init
from gramian.deep.agent.state import Layout
from tests.deep.populations import SPECS


@pytest.mark.parametrize("kind", SPECS)
def test_views_are_the_parameters_and_share_the_rows_memory(kind):
    layout, parameters = Layout(SPECS[kind]), init(SPECS[kind], [0, 1])
    rows = layout.flatten(parameters)
    views = layout.views(rows)
    assert list(views) == list(parameters)
    assert all(torch.equal(views[name], parameters[name]) for name in parameters)
    views["head.bias"][1, 0] = 7.0
    assert (rows == 7.0).sum() == 1


@pytest.mark.parametrize("kind", SPECS)
def test_rows_are_aligned_and_the_body_comes_first(kind):
    layout = Layout(SPECS[kind])
    rows = torch.zeros(2, sum(layout.sizes) + layout.padding)
    assert rows.shape[1] % 8 == 0
    for name, view in layout.views(rows).items():
        view.fill_(1.0 if name.startswith("body.") else 2.0)
    assert (rows[:, : layout.body_size] == 1).all()
    assert (rows[:, layout.body_size : sum(layout.sizes)] == 2).all()
    assert (rows[:, sum(layout.sizes) :] == 0).all()
