"""Time and peak memory of the penalties, forward and backward, as d and n grow.

    python -m benchmarks.penalties [--devices cpu cuda] [--threads 2] [--repeats 7] [--quick] [--csv FILE]

On CUDA a pass is replayed as a graph: at these sizes launching its kernels one by one takes longer than running them.
Peak memory counts what the penalty and its gradient allocate beyond the features themselves.
"""

import csv
import io
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.command_line import Parser, new_file
from gramian import covariance_penalty, gram_penalty, unbiased_gram_penalty
from gramian.core.files import output_folder, replace_text

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

Rows = list[tuple[str, str, int, int, str, str, int]]
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


def measure(n: int, d: int, device: str, repeats: int, least_s: float) -> dict[str, tuple[float, int]]:
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
    if device == "cuda":
        free = torch.cuda.mem_get_info()[0]
    else:
        pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
        free = os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    return COVARIANCE_MATRICES * 4 * d**2 < free / 2


def in_bytes(number: float) -> str:
    """A number of bytes for a reader."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}"


def tidy(device: str, axis: str, n: int, d: int, found: dict[str, tuple[float, int]]) -> Rows:
    """One row of the CSV for each form: median time in µs to four digits and peak memory."""
    return [(device, axis, n, d, form, f"{1e6 * elapsed:.4g}", peak) for form, (elapsed, peak) in found.items()]


def table_in_d(features: Sequence[int], device: str, repeats: int, least_s: float) -> Rows:
    """Print the table for growing d at n = 32, and the exponents."""
    print(f"\nn = {FIXED_N}, d grows. µs for one forward and backward pass; memory at its peak.\n")
    print(
        "| d | covariance | Gram | unbiased | cov/Gram | unb/Gram | memory: covariance | Gram | unbiased | cov/Gram |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    results = {}
    for d in features:
        results[d] = found = measure(FIXED_N, d, device, repeats, least_s)
        micro = {name: 1e6 * elapsed for name, (elapsed, _) in found.items()}
        memory = {name: in_bytes(peak) for name, (_, peak) in found.items()}
        if "covariance" in micro:
            ratio = f"{micro['covariance'] / micro['gram']:.1f}"
            memory_ratio = f"{found['covariance'][1] / found['gram'][1]:.0f}"
        else:
            fitted = max(size for size in results if "covariance" in results[size])
            predicted = results[fitted]["covariance"][1] * (d / fitted) ** 2
            memory["covariance"] = f"({in_bytes(predicted)})"
            ratio, memory_ratio = "–", f"({predicted / found['gram'][1]:.0f})"
        explicit = f"{micro['covariance']:,.0f}" if "covariance" in micro else "not run"
        print(
            f"| {d:,} | {explicit} | {micro['gram']:,.0f} | {micro['unbiased']:,.0f} | {ratio} "
            f"| {micro['unbiased'] / micro['gram']:.2f} "
            f"| {memory['covariance']} | {memory['gram']} | {memory['unbiased']} | {memory_ratio} |",
            flush=True,
        )
    print("\nIn parentheses: memory predicted from the largest d that was run, where the explicit form does not fit.\n")
    for name in FORMS:
        sizes = [d for d in features if name in results[d]]
        time_slope = exponent(sizes, [results[d][name][0] for d in sizes])
        memory_slope = exponent(sizes, [results[d][name][1] for d in sizes])
        print(f"{name}: time grows as d^{time_slope:.2f}, memory as d^{memory_slope:.2f}")
    return [row for d, found in results.items() for row in tidy(device, "d", FIXED_N, d, found)]


def table_in_n(samples: Sequence[int], device: str, repeats: int, least_s: float) -> Rows:
    """Print the table for growing n at d = 512, the exponents and the crossing."""
    print(f"\nd = {FIXED_D}, n grows. µs for one forward and backward pass.\n")
    print("| n | covariance | Gram | unbiased | cov/Gram |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    results = {}
    for n in samples:
        results[n] = found = measure(n, FIXED_D, device, repeats, least_s)
        micro = [1e6 * found[name][0] for name in FORMS]
        print(f"| {n:,} | " + " | ".join(f"{t:,.0f}" for t in micro) + f" | {micro[0] / micro[1]:.2f} |", flush=True)
    print()
    for name in FORMS:
        print(f"{name}: time grows as n^{exponent(samples, [results[n][name][0] for n in samples]):.2f}")
    print(crossing(samples, [results[n]["covariance"][0] / results[n]["gram"][0] for n in samples]))
    return [row for n, found in results.items() for row in tidy(device, "n", n, FIXED_D, found)]


def crossing(samples: Sequence[int], ratios: Sequence[float]) -> str:
    """Say at which n the ratio covariance/Gram goes through 1, by interpolation of its logarithm."""
    logs = [math.log(ratio) for ratio in ratios]
    changes = [i for i in range(1, len(logs)) if (logs[i - 1] > 0) != (logs[i] > 0)]
    if not changes:
        return f"the {'Gram' if logs[0] > 0 else 'covariance'} form is the cheaper one at every n measured"
    if len(changes) > 1:
        around = ", ".join(f"{samples[i - 1]}–{samples[i]}" for i in changes)
        return f"there is no single crossing: the ratio goes through 1 between n = {around}"
    i = changes[0]
    share = logs[i - 1] / (logs[i - 1] - logs[i])
    return f"the forms cross near n = {samples[i - 1] * (samples[i] / samples[i - 1]) ** share:.0f}"


def main() -> None:
    """Print both tables, and write their numbers as CSV where a file is named."""
    parser = Parser("penalties", __doc__)
    present = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    parser.add_argument("--devices", nargs="+", default=present, choices=("cpu", "cuda"), help="all that are there")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="three sizes, short repeats")
    parser.add_argument("--csv", type=new_file, help="write the numbers to this file too")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    features, samples = (FEATURES[:3], SAMPLES[:3]) if options.quick else (FEATURES, SAMPLES)
    least_s = 0.002 if options.quick else 0.1
    rows: Rows = []
    for device in options.devices:
        where = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()}, {options.threads} threads"
        print(f"torch {torch.__version__}, {where}, float32, centred, median of {options.repeats} repeats")
        rows += table_in_d(features, device, options.repeats, least_s)
        rows += table_in_n(samples, device, options.repeats, least_s)
    if options.csv:
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(rows)
        output_folder(options.csv.parent)
        replace_text(options.csv, text.getvalue())


if __name__ == "__main__":
    main()
