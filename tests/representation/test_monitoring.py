"""The monitor: what it measures, when, and that the host does not notice it."""

import copy
import io
import math

import pytest
import torch
from torch import nn

import gramian
from gramian.representation.measures import FeatureStatistics
from gramian.representation.monitoring import LIVE, SHARE


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def batches(count, n=16, d=4):
    return torch.randn(count, n, d, generator=torch.Generator().manual_seed(1))


def test_the_measures_are_those_of_the_newest_states_that_were_kept(monkeypatch):
    monkeypatch.setattr("gramian.representation.monitoring.SHARE", 1.0)
    model = network()
    watch = gramian.monitor(model[1], every=10, samples=40)
    for batch in batches(10):
        model(batch)
    newest = model[:2](batches(10).flatten(0, 1)[-40:]).detach()
    expected = FeatureStatistics.of(newest).summary(LIVE)
    assert watch.latest() == pytest.approx(expected, rel=1e-6)
    assert all(type(value) is float for value in watch.latest().values())


def test_measurements_take_a_small_share_of_the_time(monkeypatch):
    clock = iter([0.0, 2.0, 100.0, 202.0, 203.0])  # the first takes 2 s; the second would come too early
    monkeypatch.setattr("gramian.representation.monitoring.time.perf_counter", lambda: next(clock))
    model = network()
    watch = gramian.monitor(model[1], every=1)
    found = []
    for batch in batches(3):
        model(batch)
        found.append(watch.latest())
        watch._rows.add_(1)  # another measurement would give something else
    assert found[0] == found[1] != found[2]


def test_it_measures_once_in_so_many_passes(monkeypatch):
    monkeypatch.setattr("gramian.representation.monitoring.MOST_TIME", math.inf)
    model = network()
    watch = gramian.monitor(model[1], every=50, measures=["feature_norm"])
    measured = []
    summary = FeatureStatistics.summary
    monkeypatch.setattr(FeatureStatistics, "summary", lambda *given: measured.append(watch.passes) or summary(*given))
    for batch in batches(170):
        model(batch)
        watch.latest()
    assert measured == [50, 100, 150]
    assert watch.passes == 170


def test_there_is_nothing_before_the_first_measurement():
    model = network()
    watch = gramian.monitor(model[1], every=3)
    for batch in batches(2):
        model(batch)
        assert watch.latest() == {}


@pytest.mark.parametrize("period", range(1, 30))
def test_no_period_of_the_host_is_missed(period):
    """Every phase of a host that acts and learns by turns is kept about as often as the others."""
    model = nn.Identity()
    watch = gramian.monitor(model, every=1, samples=10_000)
    for step in range(period * 400):
        model(torch.full((1, 1), float(step % period)))
    kept = watch._rows[: watch._filled].flatten().long().bincount(minlength=period)
    assert (kept >= 0.6 * SHARE * 400).all()


def test_what_goes_into_a_layer():
    model = network()
    inside, outside = gramian.monitor(model[2], 1, on="input"), gramian.monitor(model[1], 1)
    model(batches(1)[0])
    assert inside.latest() == outside.latest()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda x: x[0], id="unbatched"),
        pytest.param(lambda x: x.double(), id="double"),
        pytest.param(lambda x: x.bfloat16(), id="bfloat16"),
        pytest.param(lambda x: x[:, :, None], id="convolutional"),
        pytest.param(lambda x: torch.cat([x, x.new_full((1, 4), torch.nan)]), id="not finite"),
    ],
)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_features_of_every_kind_are_taken(change, mode):
    layer = nn.Identity()
    watch = gramian.monitor(layer, every=2)
    for batch in batches(20):
        with mode():
            layer(change(batch))
    layer(change(batches(1)[0]))
    assert 0 < watch.latest()["feature_norm"] < 4


def test_the_host_trains_as_without_it():
    def trained(watched):
        model = network()
        optimiser = torch.optim.Adam(model.parameters())
        watch = gramian.monitor(model[1], every=5) if watched else None
        for batch in batches(20):
            optimiser.zero_grad()
            nn.functional.dropout(model(batch)).square().mean().backward()
            optimiser.step()
            if watch is not None:
                watch.latest()
        return [*model.parameters(), torch.get_rng_state()]

    assert all(torch.equal(*pair) for pair in zip(trained(False), trained(True), strict=True))


def test_a_copy_is_not_watched_and_remove_ends_it():
    model = network()
    watch = gramian.monitor(model[1], every=1)
    target = copy.deepcopy(model)
    torch.save(model, file := io.BytesIO())
    file.seek(0)
    for other in (target, torch.load(file, weights_only=False)):
        other(batches(1)[0])
    assert watch.passes == 0
    watch.remove()
    watch.remove()
    model(batches(1)[0])
    assert watch.passes == 0
    assert not model[1]._forward_hooks


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False])
def test_a_compiled_host_is_watched_and_not_compiled_anew(before):
    from torch._dynamo.testing import CompileCounter

    torch.compiler.reset()
    model = network()
    if before:
        watch = gramian.monitor(model[1], every=10)
    counter = CompileCounter()
    compiled = torch.compile(model, backend=counter)
    if not before:
        compiled(batches(1)[0])
        watch = gramian.monitor(model[1], every=10)
    for batch in batches(40):
        compiled(batch)
    assert watch.passes == 40
    assert watch.latest()["srank"] > 1
    assert counter.frame_count <= 5


class Pair(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("layer", "options", "error", "message"),
    [
        ("body", {}, TypeError, "layer must be a torch.nn.Module, not str"),
        (nn.ReLU(), {"every": 0}, ValueError, "every is 0; it must be a whole number, at least 1"),
        (nn.ReLU(), {"samples": 1}, ValueError, "samples is 1; it must be a whole number, at least 2"),
        (nn.ReLU(), {"on": "inputs"}, ValueError, "on is 'inputs'; it must be 'output' or 'input'"),
        (nn.ReLU(), {"measures": ["rank"]}, ValueError, "unknown measure 'rank'; did you mean 'srank'"),
        (Pair(), {}, TypeError, "needs one tensor of floating-point features; Pair has a tuple"),
        (nn.ReLU(), {"samples": 5}, ValueError, "the layer had 4 features, and now it has 3"),
    ],
)
def test_bad_input_is_refused_in_one_line(layer, options, error, message):
    def use():
        gramian.monitor(layer, **options)
        layer(torch.zeros(2, 4))
        for _ in range(20):
            layer(torch.zeros(2, 3))

    with pytest.raises(error, match=message):
        use()


def test_inside_vmap_it_says_what_to_do():
    layer = nn.Linear(4, 2)
    gramian.monitor(layer)
    with pytest.raises(TypeError, match=r"inside vmap .* gramian.representation.probe"):
        torch.func.vmap(layer)(torch.zeros(3, 5, 4))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA")
def test_the_sample_lies_on_the_gpu():
    model = network().cuda()
    watch = gramian.monitor(model[1], every=1)
    model(batches(1)[0].cuda())
    assert watch._rows.is_cuda
    assert watch.latest()["srank"] > 1
