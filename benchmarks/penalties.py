"""Time and peak memory of the penalties, forward and backward, as d and n grow.

    python -m benchmarks.penalties [--devices cpu cuda] [--repeats 7] [--features D ...] [--quick] [--csv FILE]

On CUDA a pass is replayed as a graph: at these sizes launching its kernels one by one takes longer than running them.
Peak memory counts what the penalty and its gradient allocate beyond the features themselves.
"""

import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.command_line import Parser, exit_code, new_file, table, whole, write_csv
from gramian import covariance_penalty, gram_penalty, unbiased_gram_penalty
from gramian.core.cores import cores
from gramian.deep.training.memory import available_bytes

FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "covariance": covariance_penalty,
    "gram": gram_penalty,
    "unbiased": unbiased_gram_penalty,
}
FEATURES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
SAMPLES = (8, 16, 32, 64, 128, 256, 512, 1024)
FIXED_N, FIXED_D = 32, 512
COVARIANCE_MATRICES = 5
"""d×d matrices that the explicit form may need at once, for the decision whether to run it."""

Found = Mapping[str, tuple[float, int]]
"""Seconds and bytes of each form."""
COLUMNS = ("device", "axis", "n", "d", "form", "microseconds", "peak_bytes")


def gradient(form: Callable[[Tensor], Tensor], features: Tensor) -> Tensor:
    """One forward and one backward pass."""
    (result,) = torch.autograd.grad(form(features), features)
    return result


def make_pass(form: Callable[[Tensor], Tensor], features: Tensor) -> Callable[[], object]:
    """A function that does one pass; on CUDA a graph, so that the kernels are timed and not their launches."""
    if not features.is_cuda:
        return lambda: gradient(form, features)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        gradient(form, features)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gradient(form, features)
    return graph.replay


def seconds(one_pass: Callable[[], object], least_s: float, device: str) -> float:
    """Mean time of one pass, over as many as fill ``least_s``."""
    synchronise = torch.cuda.synchronize if device == "cuda" else lambda: None
    synchronise()
    passes, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < least_s or passes == 0:
        for _ in range(16 if device == "cuda" else 1):  # synchronise seldom, so that the device never waits
            one_pass()
            passes += 1
        synchronise()
    return elapsed / passes


def peak_bytes(form: Callable[[Tensor], Tensor], features: Tensor) -> int:
    """The most memory that one pass holds at any moment."""
    if features.is_cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        gradient(form, features)
        torch.cuda.synchronize()
        return int(torch.cuda.max_memory_allocated() - before)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        gradient(form, features)
    assert record.profiler is not None
    assert record.profiler.kineto_results is not None
    events = [event for event in record.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Slope of the least-squares line through (log size, log value)."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    return statistics.linear_regression(xs, ys).slope


def measure(n: int, d: int, device: str, repeats: int, least_s: float) -> Found:
    """Median time and peak memory of each form that fits; the forms take turns within each repeat."""
    features = torch.randn(n, d, device=device, generator=torch.Generator(device).manual_seed(0), requires_grad=True)
    forms = {name: form for name, form in FORMS.items() if name != "covariance" or covariance_fits(d, device)}
    for form in forms.values():  # a first pass, in which libraries set up their workspaces
        gradient(form, features)
    peaks = {name: peak_bytes(form, features) for name, form in forms.items()}
    passes = {name: make_pass(form, features) for name, form in forms.items()}
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(repeats):
        for name, one_pass in passes.items():
            times[name].append(seconds(one_pass, least_s, device))
    return {name: (statistics.median(times[name]), peaks[name]) for name in forms}


def covariance_fits(d: int, device: str) -> bool:
    """Whether the explicit form's matrices fit into half of the free memory."""
    return COVARIANCE_MATRICES * 4 * d**2 < available_bytes(device) / 2


def in_bytes(number: float) -> str:
    """A number of bytes for a reader.

    Examples
    --------
    >>> in_bytes(5_250_000)
    '5.25 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}"


def table_in(axis: str, results: Mapping[int, Found]) -> str:
    """Markdown: times and peak memory of all forms over d or n, and the exponents of their growth."""
    lines = []
    for size, found in results.items():
        micro = [f"{1e6 * found[form][0]:,.0f}" if form in found else "not run" for form in FORMS]
        memory = [in_bytes(found[form][1]) if form in found else "–" for form in FORMS]
        ratios = [
            f"{found[form][0] / found['gram'][0]:.2f}" if form in found else "–" for form in ("covariance", "unbiased")
        ]
        lines.append([f"{size:,}", *micro, *ratios, *memory])
    columns = [*FORMS, "cov/Gram", "unb/Gram", *(f"memory: {form}" for form in FORMS)]
    text = table([axis, *columns], lines, words=0)
    for form in FORMS:
        sizes = [size for size, found in results.items() if form in found]
        growth = [exponent(sizes, [results[size][form][which] for size in sizes]) for which in (0, 1)]
        text += f"\n{form}: time grows as {axis}^{growth[0]:.2f}, memory as {axis}^{growth[1]:.2f}"
    return text + "\n"


def measured(arguments: Sequence[str] | None) -> None:
    """Print both tables of each device, and write their numbers as CSV where a file is named."""
    parser = Parser("penalties", __doc__)
    present = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    parser.add_argument("--devices", nargs="+", default=present, choices=("cpu", "cuda"), help="all that are there")
    parser.add_argument("--threads", type=whole(1, 1024), default=cores())
    parser.add_argument("--repeats", type=whole(1, 10_000), default=7)
    parser.add_argument("--features", nargs="+", type=whole(2, 2**20), metavar="D", help="these d alone, and one n")
    parser.add_argument("--quick", action="store_true", help="three sizes, short repeats")
    parser.add_argument("--csv", type=new_file, help="write the numbers to this file too")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    sizes = {"d": options.features} if options.features else {"d": FEATURES, "n": SAMPLES}
    rows: list[tuple[object, ...]] = []
    for device in options.devices:
        where = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()}, {options.threads} threads"
        print(f"torch {torch.__version__}, {where}, float32, centred, median of {options.repeats} repeats")
        for axis, own in sizes.items():
            shapes = [
                (FIXED_N, size) if axis == "d" else (size, FIXED_D) for size in (own[:3] if options.quick else own)
            ]
            results = {}
            for n, d in shapes:
                found = measure(n, d, device, options.repeats, 0.002 if options.quick else 0.1)
                results[d if axis == "d" else n] = found
                rows += [(device, axis, n, d, form, f"{1e6 * time:.4g}", peak) for form, (time, peak) in found.items()]
            fixed = f"n = {FIXED_N}, d grows" if axis == "d" else f"d = {FIXED_D}, n grows"
            print(f"\n{fixed}. µs for one forward and backward pass; memory at its peak.\n\n{table_in(axis, results)}")
    if options.csv:
        write_csv(options.csv, COLUMNS, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("penalties", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
