import gc
import shutil
import weakref
from functools import partial

import pytest
import torch
from torch._dynamo import config as dynamo
from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile

from gramian.deep.engines.graphs import compile_whole, compiler_options
from tests.deep.agent.test_learner_on_devices import DEVICES

needs_compiler = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler")


class Pooled(Exception):  # noqa: N818 - it names what happened
    """The compiler asked for one of its pools."""


@pytest.fixture
def no_pools(monkeypatch):
    """A compiler that would compile in eight processes or threads, keeps nothing, and has no pool to do it in."""

    def refuse():
        raise Pooled

    torch.compiler.reset()
    monkeypatch.setattr(AsyncCompile, "pool", staticmethod(refuse))
    monkeypatch.setattr(AsyncCompile, "process_pool", staticmethod(refuse))
    monkeypatch.setattr(AsyncCompile, "_ready_future", None)
    with config.patch(compile_threads=8, force_disable_caches=True):
        yield
    torch.compiler.reset()


def compile_and_run(device, options):
    work = torch.compile(lambda x: (x.sin() * 2).sum(), fullgraph=True, dynamic=False, options=options)
    x = torch.linspace(0, 1, 100, device=device)
    torch.testing.assert_close(work(x), (x.sin() * 2).sum())


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.usefixtures("no_pools")
def test_an_update_is_compiled_in_its_own_process_and_thread(device, tuned):
    compile_and_run(device, compiler_options(tuned=tuned))
    assert config.compile_threads == 8  # what others compile is left alone


@pytest.mark.usefixtures("no_pools")
def test_the_processes_that_compile_for_a_gpu_are_not_woken():
    with config.patch(compiler_options(tuned=True)):
        AsyncCompile.wakeup()
        assert not AsyncCompile.use_process_pool()
    with pytest.raises(Pooled):
        AsyncCompile.wakeup()


class Population:
    """Tensors that stay where they are, and a function of them: as an engine has it, at sizes of its own."""

    def __init__(self, size, device):
        self.values, self.total = torch.linspace(0, 1, size, device=device), torch.zeros((), device=device)

    def add_up(self, sign):
        self.total.copy_(sign * self.values.sin().sum())


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_populations_one_after_another_are_all_compiled(device):
    with dynamo.patch(recompile_limit=1):
        for size in (3, 5, 9):
            population = Population(size, device)
            compile_whole(partial(population.add_up, 2.0))()
            torch.testing.assert_close(population.total, 2.0 * population.values.sin().sum())


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_what_is_compiled_goes_with_its_population(device):
    population = Population(7, device)
    work = compile_whole(partial(population.add_up, 2.0))
    work()
    gone = weakref.ref(population.values)
    del population, work
    gc.collect()
    assert gone() is None
