"""Filters that are prepared for a CPU, against plain convolutions."""

import pytest
import torch
from torch.nn import functional

from gramian.deep.agent.layout import Layout
from gramian.deep.agent.networks import NetworkSpec, by_run, convolved, forward_run, init
from gramian.deep.engines.prepared import Prepared

SIZES = {"nature": ((8, 4), (4, 2), (3, 1)), "dopamine": ((8, 4), (4, 2), (3, 1))}


def network(kind, dtype):
    spec = NetworkSpec(kind, (4, 84, 84), actions=6, features_dim=32)
    layout = Layout(spec)
    row = layout.flatten(init(spec, [3], dtype=dtype))[0]
    prepared = Prepared(layout, row)
    prepared.renew()
    return spec, by_run(layout.views(row[None]))[0], prepared, row


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
@pytest.mark.parametrize("count", [1, 3, 16])
@pytest.mark.parametrize("kind", SIZES)
def test_prepared_filters_see_whole_numbers_as_the_others_see_parts_of_255(kind, count, dtype, tolerance):
    spec, own, prepared, _ = network(kind, dtype)
    pixels = torch.randint(0, 256, (count, 4, 84, 84), dtype=torch.uint8)
    x = pixels.to(dtype) / 255
    for number, (size, stride) in enumerate(SIZES[kind], start=1):
        x = spec.padded(x, size, stride)
        x = functional.conv2d(x, own[f"body.conv{number}.weight"], own[f"body.conv{number}.bias"], stride).relu()
    found = convolved(spec, prepared.parameters, pixels, prepared=True)
    torch.testing.assert_close(found, x, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(
        forward_run(spec, prepared.parameters, pixels, prepared=True).values,
        forward_run(spec, own, pixels).values,
        rtol=tolerance,
        atol=tolerance,
    )


def test_copies_are_made_once_when_the_originals_change(monkeypatch):
    _, own, prepared, row = network("nature", torch.float32)
    renewed = []
    renew = prepared.renew
    monkeypatch.setattr(prepared, "renew", lambda: renewed.append(renew()))
    prepared.refresh()
    prepared.refresh()
    assert len(renewed) == 1
    before = prepared.parameters["body.conv2.weight"].clone()
    row.mul_(2)
    prepared.refresh()
    assert len(renewed) == 2
    assert torch.equal(prepared.parameters["body.conv2.weight"], 2 * before)
    assert prepared.parameters["body.fc1.weight"].data_ptr() == own["body.fc1.weight"].data_ptr()


def test_a_copy_that_was_interrupted_is_made_again(monkeypatch):
    _, own, prepared, row = network("nature", torch.float32)
    prepared.refresh()
    row.mul_(2)

    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(prepared, "renew", interrupt)
        with pytest.raises(KeyboardInterrupt):
            prepared.refresh()
    prepared.refresh()
    assert torch.equal(prepared.parameters["body.conv2.weight"], own["body.conv2.weight"])


def test_tensors_of_the_inference_mode_are_always_copied():
    with torch.inference_mode():
        _, own, prepared, row = network("nature", torch.float32)
        for _ in range(2):
            row.mul_(2)
            prepared.refresh()
            assert torch.equal(prepared.parameters["body.conv2.weight"], own["body.conv2.weight"])
