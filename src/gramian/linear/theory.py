"""The paper's propositions as executable statements on random decision processes.

Each statement computes what the proposition speaks of and says whether it holds. Those of the paper's statements that
are false are expected to fail.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy  # its parts are loaded when they are used

from gramian.core.csv_tables import write_csv
from gramian.core.errors import require, require_least
from gramian.core.statistics import mean_and_error
from gramian.linear.kernels import Floats, add_rank_one_projected
from gramian.linear.learner import ESTIMATORS, check_lambda, initial_transform
from gramian.linear.mdp import NORM_CAP, RewardProcess, check_features, evaluate_reduced, offdiag, random_process

CONFIDENCE = 0.9999
"""Of the tests on the mean of the noise: several are made on every process."""

SHOWN_CONFIDENCE = 0.999
"""Of the intervals that are shown beside these tests."""

GROWS = 0.5
"""A ratio that grows faster than this power of ‖A‖ has no bound over all matrices."""

APPROACHED = 0.05
"""Iterates have approached the zeros of their mean update where its norm has fallen to this share of the first."""


@dataclass(frozen=True)
class Theory:
    """Check the paper's propositions on random Markov decision processes under a fixed policy.

    Prints what was computed and a verdict for each. Statements of the paper that are false are expected to fail; the
    exit code is 1 where any verdict is not the expected one.
    """

    states: int = 12
    """States of the random processes."""
    features: int = 4
    """Features d; the features have full rank."""
    processes: int = 5
    """Random processes to check every statement on."""
    lam: float = 0.5
    """Coefficient λ of the decorrelating term."""
    samples: int = 200_000
    """Draws for the means of the noise."""
    steps: int = 100_000
    """Steps of the stochastic iterations."""
    seed: int = 0
    """Of all randomness."""
    out: Path | None = None
    """Folder for theory.csv; without it, nothing is written."""

    def __post_init__(self) -> None:
        for name, least in (("processes", 1), ("samples", 1000), ("steps", 100), ("seed", 0)):
            require_least(self, least, name)
        check_features(self.features, self.states)
        check_lambda(self.lam)
        require(self.lam > 0, "lam", self.lam, "above 0: the propositions speak of such a λ")


@dataclass(frozen=True)
class Finding:
    """One computed statement."""

    proposition: str
    statement: str
    computed: str
    expected: bool
    """Whether the statement should hold; the paper's false ones are expected to fail."""
    holds: bool

    @property
    def verdict(self) -> str:
        """What to print."""
        return "holds" if self.holds else "does not hold"


Findings = Iterator[Finding]


def _random_orthogonal(d: int, rng: np.random.Generator) -> Floats:
    return initial_transform("orthogonal", d, rng)


def constructed_minimum(process: RewardProcess, w: Floats) -> Floats:
    """Return A = V·diag(Vᵀw) with V the orthogonal eigenvectors of C: A·1 = w, and AᵀCA is diagonal."""
    V = np.linalg.eigh(process.C)[1]
    return np.ascontiguousarray(V * (V.T @ w))


def proposition_1(process: RewardProcess, options: Theory, rng: np.random.Generator) -> Findings:
    """Check that the minima are equal, diagonal where constructed, degenerate elsewhere, and nowhere undercut."""
    best = process.best_weights()
    least = process.td_loss(best)
    A = constructed_minimum(process, best)
    gap = abs(process.loss(A, options.lam) - least)
    yield Finding("1", "min L_REG = min L_TD: the constructed A attains it", f"gap {gap:.1e}", True, gap < 1e-10)
    off = float(np.abs(offdiag(A.T @ process.C @ A)).max())
    yield Finding("1", "AᵀΦᵀDΦA is diagonal there", f"largest off-diagonal entry {off:.1e}", True, off < 1e-10)
    degenerate = np.outer(best, np.eye(process.d)[0])
    gap = abs(process.loss(degenerate, options.lam) - least)
    energies = np.diag(degenerate.T @ process.C @ degenerate)
    left = int((energies > 1e-12 * energies.max()).sum())
    computed = f"gap {gap:.1e}, {left} of {process.d} features left"
    yield Finding("1", "θe₁ᵀ is a minimum too, with one feature left", computed, True, gap < 1e-10 and left == 1)

    def objective(flat: Floats) -> tuple[float, Floats]:
        A = flat.reshape(process.d, process.d)
        return process.loss(A, options.lam), _loss_gradient(process, A, options.lam).ravel()

    limits = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    starts = (rng.standard_normal(process.d**2) for _ in range(5))
    ends = [scipy.optimize.minimize(objective, x, jac=True, method="L-BFGS-B", options=limits) for x in starts]
    lowest = min(ends, key=lambda end: float(end.fun))
    above, end = float(lowest.fun) - least, lowest.x.reshape(A.shape)
    off = float(np.abs(offdiag(end.T @ process.C @ end)).max())
    statement = "descent from random A finds nothing lower, and its lowest end is decorrelated"
    computed = f"lowest − min {above:+.1e}, largest off-diagonal entry there {off:.1e}"
    yield Finding("1", statement, computed, True, -1e-9 < above < 1e-5 and off < 1e-2)


def _loss_gradient(process: RewardProcess, A: Floats, lam: float) -> Floats:
    """Full gradient of L_REG(A): the target moves with A here, unlike in the semi-gradient."""
    value = process.phi @ A.sum(axis=1)
    weighted = process.mu[:, None] * process.P
    errors = process.r[:, None] + process.gamma * value[None, :] - value[:, None]
    by_weights = (weighted * errors).sum(axis=0) @ process.phi * process.gamma
    by_weights -= (weighted * errors).sum(axis=1) @ process.phi
    gradient: Floats = np.outer(by_weights, np.ones(process.d)) + lam * process.C @ A @ offdiag(A.T @ process.C @ A)
    return gradient


def proposition_2(process: RewardProcess, _: Theory, rng: np.random.Generator) -> Findings:
    """Check that UVᵀ is the nearest orthogonal matrix, and that one rotation projects a rank-one step."""
    A = rng.standard_normal((process.d, process.d))
    U, _singular_values, Vt = np.linalg.svd(A)
    gap = float(np.abs(U @ Vt - scipy.linalg.polar(A)[0]).max())
    yield Finding("2", "UVᵀ is scipy's polar factor", f"largest difference {gap:.1e}", True, gap < 1e-10)
    nearest = np.linalg.norm(A - U @ Vt)
    others = min(float(np.linalg.norm(A - _random_orthogonal(process.d, rng))) for _ in range(2000))
    turned = min(
        float(np.linalg.norm(A - U @ Vt @ scipy.linalg.expm(0.01 * (skew - skew.T))))
        for skew in rng.standard_normal((200, process.d, process.d))
    )
    other = min(others, turned)
    computed = f"distance {nearest:.4f}, nearest other {other:.4f}"
    yield Finding("2", "no orthogonal matrix is nearer, at random or nearby", computed, True, bool(nearest <= other))
    Q, phi, u = _random_orthogonal(process.d, rng), process.phi[0], 0.3 * rng.standard_normal(process.d)
    found, w = Q.copy(), Q.sum(axis=1)
    add_rank_one_projected(found, w, np.ones(process.d), Q.T @ phi, u, np.empty(process.d), np.empty(process.d))
    gap = float(np.abs(found - scipy.linalg.polar(Q + np.outer(phi, u))[0]).max())
    statement = "the O(d²) rotation is the projection of a rank-one step"
    yield Finding("2", statement, f"largest difference {gap:.1e}", True, gap < 1e-10)


def lipschitz_constant(process: RewardProcess, lam: float) -> float:
    """Return d‖M‖ + 3λ‖C‖², with which h is Lipschitz over orthogonal matrices."""
    return float(process.d * np.linalg.norm(process.M, 2) + 3 * lam * np.linalg.norm(process.C, 2) ** 2)


def proposition_3(process: RewardProcess, options: Theory, rng: np.random.Generator) -> Findings:
    """Check that h is Lipschitz over orthogonal matrices, with the constant d‖M‖ + 3λ‖C‖², and not over all."""
    bound = lipschitz_constant(process, options.lam)

    def ratio(A: Floats, B: Floats) -> float:
        change = process.h(A, options.lam) - process.h(B, options.lam)
        return float(np.linalg.norm(change) / np.linalg.norm(A - B))

    largest = 0.0
    for _ in range(2000):
        A, skew = _random_orthogonal(process.d, rng), rng.standard_normal((process.d, process.d))
        near = A @ scipy.linalg.expm(rng.choice([1e-3, 1e-1, 1.0]) * (skew - skew.T))
        largest = max(largest, ratio(A, near), ratio(A, _random_orthogonal(process.d, rng)))
    computed = f"largest ratio {largest:.3f}, bound {bound:.3f}"
    yield Finding("3", "h is Lipschitz over orthogonal matrices", computed, True, bool(largest <= bound))
    A, B = rng.standard_normal((2, process.d, process.d))
    large = _large(options.lam)
    power = float(np.log10(ratio(10 * large * A, 10 * large * B) / ratio(large * A, large * B)))
    computed = f"far out the ratio grows as ‖A‖^{power:.2f}"
    yield Finding("3", "h is Lipschitz over all matrices", computed, False, power < GROWS)


def _large(lam: float) -> float:
    """Return a size of A at which the decorrelating term, as λ‖A‖³, is far larger than all that grows as ‖A‖."""
    return float(100 * max(1, lam**-0.5))


def equilibrium(process: RewardProcess) -> Floats:
    """Return the point of Proposition 5: A = V·diag(Vᵀw) with w the TD(0) fixed point, M·w + b = 0."""
    return constructed_minimum(process, process.td_fixed_point())


def _robbins_monro(process: RewardProcess, options: Theory, steps: int) -> Floats:
    """Return step sizes a/(1 + n/τ)^0.75 [steps]: their sum diverges, the sum of their squares does not.

    1/a = d(1 + γ)F² + 3λF⁴ with F = max ‖φ‖ bounds how fast the update of one sample changes with A near orthogonal
    matrices, as `lipschitz_constant` does for the mean update, and τ is 1 % of the steps.
    """
    square = float((process.phi**2).sum(axis=1).max())
    first = 1 / (process.d * (1 + process.gamma) * square + 3 * options.lam * square**2)
    sizes: Floats = first / (1 + np.arange(steps) / (0.01 * steps)) ** 0.75
    return sizes


def _expected_end(process: RewardProcess, options: Theory) -> tuple[Floats, float]:
    """Return A after steps along −h from A = I, a tenth as many and up to ten times as large; and the largest ‖A‖."""
    A, largest = np.eye(process.d), 0.0
    stable = 1 / lipschitz_constant(process, options.lam)
    for alpha in np.minimum(10 * _robbins_monro(process, options, max(options.steps // 10, 1)), stable):
        A = A - alpha * process.h(A, options.lam)
        largest = max(largest, float(np.linalg.norm(A)))
        if not largest < NORM_CAP:
            return A, np.inf
    return A, largest


def _stochastic_end(process: RewardProcess, options: Theory, estimator: str, seed: int) -> tuple[Floats, float]:
    """Return A after Robbins–Monro steps from A = I, and the largest ‖A‖ on the way."""
    samples = process.sample(np.random.default_rng(seed), options.steps)
    A = np.eye(process.d)
    alphas = _robbins_monro(process, options, options.steps)
    largest = evaluate_reduced(*samples, process.gamma, alphas, options.lam, ESTIMATORS[estimator], A)
    return A, float(largest)


def _features_left(process: RewardProcess, A: Floats) -> float:
    """Return the participation ratio (Σ_i c_i)²/Σ_i c_i² of the energies c = diag(AᵀCA), from 1 to d."""
    energies = np.diag(A.T @ process.C @ A)
    return float(energies.sum() ** 2 / (energies**2).sum())


def propositions_4_and_5(process: RewardProcess, options: Theory, rng: np.random.Generator) -> Findings:
    """Check that an equilibrium exists and iterates approach it; the single-sample update has zeros of its own."""
    d, lam, w = process.d, options.lam, process.td_fixed_point()
    scale = float(np.linalg.norm(process.h(np.eye(d), lam)))
    point = equilibrium(process)
    size = float(np.linalg.norm(process.h(point, lam)))
    yield Finding("5", "h vanishes at the constructed point", f"‖h‖ = {size:.1e}", True, size < 1e-9)
    size = float(np.linalg.norm(process.h(point, lam) + single_sample_bias(process, point, lam)))
    yield Finding("5", "so does the mean single-sample update", f"its norm is {size:.2g}", False, size < 1e-9)
    degenerate = np.outer(w, np.eye(d)[0])
    size = float(np.linalg.norm(process.h(degenerate, lam) + single_sample_bias(process, degenerate, lam)))
    yield Finding("5", "the mean single-sample update vanishes at θe₁ᵀ", f"its norm is {size:.1e}", True, size < 1e-9)

    seed = int(rng.integers(2**32))
    for update in ("expected", "two-sample", "single"):
        if update == "expected":
            A, largest = _expected_end(process, options)
        else:
            A, largest = _stochastic_end(process, options, update, seed)
        goal = "the zeros of its own mean update" if update == "single" else "h = 0"
        statement = f"{update} update: iterates approach {goal}"
        if not np.isfinite(largest):
            yield Finding("4", statement, f"the iterates diverged: ‖A‖ left {NORM_CAP:.0e}", True, False)
            continue
        mean = process.h(A, lam)
        if update == "single":
            mean = mean + single_sample_bias(process, A, lam)
        fell = float(np.linalg.norm(mean)) / scale
        away = float(np.linalg.norm(A.sum(axis=1) - w) / np.linalg.norm(w))
        computed = (
            f"mean update fell to {fell:.2g} of the first ‖h‖; {away:.2g} from the TD(0) values; "
            f"{_features_left(process, A):.2f} of {d} features left (equilibrium of Proposition 5: "
            f"{_features_left(process, point):.2f}); largest ‖A‖ {largest:.1f}"
        )
        yield Finding("4", statement, computed, True, fell < APPROACHED)


def _noise(
    process: RewardProcess, A: Floats, lam: float, estimator: str, rng: np.random.Generator, size: int
) -> Floats:
    """Noise −g(A) − h(A) of ``size`` sampled steps [size, d, d]; g is the update direction that the step adds to A."""
    phi, reward, following, seconds = process.sample(rng, size)
    w = A.sum(axis=1)
    delta = reward + process.gamma * following @ w - phi @ w
    y, other = phi @ A, seconds @ A
    if estimator == "single":
        v = (y**2).sum(axis=1, keepdims=True) * y - y**3
    else:
        v = (y * other).sum(axis=1, keepdims=True) * other - y * other**2
    update = phi[:, :, None] * (delta[:, None] - lam * v)[:, None, :]
    noise: Floats = -update - process.h(A, lam)
    return noise


def single_sample_bias(process: RewardProcess, A: Floats, lam: float) -> Floats:
    """Mean of the single-sample noise, exactly: λ(E[φ(‖y‖²y − y³)ᵀ] − CA·offdiag(AᵀCA))."""
    y = process.phi @ A
    v = (y**2).sum(axis=1, keepdims=True) * y - y**3
    bias: Floats = lam * (process.phi.T @ (process.mu[:, None] * v) - process.C @ A @ offdiag(A.T @ process.C @ A))
    return bias


def mean_test(samples: Floats) -> tuple[float, float]:
    """Test that the mean of ``samples`` [n, ...] is zero in every entry at once: return Hotelling's T² and its limit.

    T² = n·m̄ᵀS⁻¹m̄ with m̄ the mean and S the covariance of the entries; where the mean is zero it is χ² distributed with
    as many degrees of freedom as S has rank, and stays below the limit with the probability `CONFIDENCE`. An entry, or
    a combination of them, that never varies must be zero itself: otherwise T² is infinite.
    """
    flat = samples.reshape(len(samples), -1)
    mean = flat.mean(axis=0)
    variances, directions = np.linalg.eigh(np.atleast_2d(np.cov(flat, rowvar=False)))
    varies = variances > 1e-12 * variances.max()
    along = directions.T @ mean
    limit = float(scipy.stats.chi2.ppf(CONFIDENCE, max(int(varies.sum()), 1)))
    if (np.abs(along[~varies]) > 1e-8 * (1 + np.abs(flat).max())).any():
        return np.inf, limit
    return float(len(flat) * (along[varies] ** 2 / variances[varies]).sum()), limit


def mean_along(samples: Floats, direction: Floats) -> tuple[float, float]:
    """Return the mean of ``samples`` [n, ...] along ``direction`` [...], and half of its interval."""
    along = samples.reshape(len(samples), -1) @ (direction / np.linalg.norm(direction)).ravel()
    mean, error = mean_and_error(along)
    return mean, float(scipy.stats.norm.ppf(0.5 + SHOWN_CONFIDENCE / 2) * error)


def noise_bound(process: RewardProcess, lam: float) -> float:
    """Return a K with E‖M‖² ≤ K(1 + ‖A‖²) for the single-sample noise at every orthogonal A.

    There ‖y‖ = ‖φ‖ and ‖A·1‖ = √d, so that |δ| ≤ |r| + (‖φ‖ + γ‖φ'‖)√d, ‖v‖ ≤ ‖φ‖³ and ‖h‖ ≤ √d·E‖φ‖|δ| + λ(E‖φ‖²)².
    The noise of a step φ(δ1 − λv)ᵀ is no longer than the step and h together; K(1 + d) is the mean of that squared.
    """
    size, root = np.linalg.norm(process.phi, axis=1), np.sqrt(process.d)
    delta = np.abs(process.r)[:, None] + (size[:, None] + process.gamma * size[None, :]) * root
    probability = process.mu[:, None] * process.P
    h = root * (probability * size[:, None] * delta).sum() + lam * (process.mu @ size**2) ** 2
    step = size[:, None] * (root * delta + lam * size[:, None] ** 3)
    return float((probability * (step + h) ** 2).sum() / (1 + process.d))


def proposition_6(process: RewardProcess, options: Theory, rng: np.random.Generator) -> Findings:
    """Test the mean of the noise, all entries at once: zero for two samples, not for one; and bound its square."""
    A = _random_orthogonal(process.d, rng)
    bias = single_sample_bias(process, A, options.lam)

    def finding(statement: str, noise: Floats, expected: bool) -> Finding:
        statistic, limit = mean_test(noise)
        mean, half = mean_along(noise, bias)
        if np.isfinite(statistic):
            test = f"of all entries at once T² = {statistic:.4g}, limit {limit:.1f} ({100 * CONFIDENCE:.4g} %)"
        else:
            test = "not zero in a direction in which the noise does not vary at all"
        shown = f"mean along the bias {mean:+.4f} ± {half:.4f} ({100 * SHOWN_CONFIDENCE:.4g} %); {test}"
        return Finding("6", statement, shown.replace("-", "−"), expected, statistic <= limit)

    noise = _noise(process, A, options.lam, "single", rng, options.samples)
    yield finding("the single-sample noise has mean zero", noise, False)
    yield finding("less its exact bias it has", noise - bias, True)
    noise = _noise(process, A, options.lam, "two-sample", rng, options.samples)
    yield finding("the two-sample noise has mean zero", noise, True)
    large = _large(options.lam)
    orthogonal, far, farther = (_largest_square(process, options, rng, scale) for scale in (1.0, large, 10 * large))
    bound = noise_bound(process, options.lam)
    computed = f"largest ratio {orthogonal:.3g} for the single-sample noise, K = {bound:.3g}"
    yield Finding("6", "E‖M‖² ≤ K(1 + ‖A‖²) over orthogonal matrices", computed, True, orthogonal <= bound)
    power = float(np.log10(farther / far))
    computed = f"far out the ratio grows as ‖A‖^{power:.2f}"
    yield Finding("6", "with the same K over all matrices", computed, False, power < GROWS)


def _largest_square(process: RewardProcess, options: Theory, rng: np.random.Generator, scale: float) -> float:
    """Return the largest E‖M‖²/(1 + ‖A‖²) of the single-sample noise over 50 orthogonal matrices times ``scale``."""
    ratios = []
    for _ in range(50):
        A = scale * _random_orthogonal(process.d, rng)
        noise = _noise(process, A, options.lam, "single", rng, 1000)
        ratios.append(float((noise**2).sum(axis=(1, 2)).mean() / (1 + np.linalg.norm(A) ** 2)))
    return max(ratios)


def equation_4(process: RewardProcess, options: Theory, rng: np.random.Generator) -> Findings:
    """Check the semi-gradient against automatic differentiation, and the paper's E₁ and E₂ against offdiag."""
    import torch

    A = rng.standard_normal((process.d, process.d))
    variable = torch.tensor(A, requires_grad=True)
    phi, P, mu, r = (torch.tensor(part) for part in (process.phi, process.P, process.mu, process.r))
    value = phi @ variable.sum(dim=1)
    errors = r[:, None] + process.gamma * value.detach()[None, :] - value[:, None]
    second_moment = variable.T @ phi.T @ (mu[:, None] * phi) @ variable
    upper = torch.triu(second_moment, diagonal=1)
    loss = 0.5 * (mu[:, None] * P * errors**2).sum() + 0.5 * options.lam * (upper**2).sum()
    (gradient,) = torch.autograd.grad(loss, variable)
    gap = float(np.abs(gradient.numpy() - process.h(A, options.lam)).max())
    statement = "h is the semi-gradient by automatic differentiation"
    yield Finding("Eq. 4", statement, f"largest difference {gap:.1e}", True, gap < 1e-10)
    for d in (3, 4):
        S = rng.standard_normal((d, d))
        S = S + S.T
        gap = float(np.abs(paper_offdiagonal(S) - offdiag(S)).max())
        statement = f"the paper's E₁, E₂ give offdiag at d = {d}"
        yield Finding("Eq. 4", statement, f"largest difference {gap:.2g}", d == 3, gap < 1e-12)


def paper_offdiagonal(S: Floats) -> Floats:
    """Return E₁ᵀD̃E₂ + E₂ᵀD̃E₁ with the paper's E₁ᵀ = [e₁1ᵀ_{d−1}, e₂1ᵀ_{d−2}, …] and E₂ᵀ = [e₂1ᵀ, e₃1ᵀ₂, …].

    The columns of E₂ᵀ repeat e₂ once, e₃ twice and so on; beside those of E₁ᵀ they are all pairs i < j at d = 3 only.
    """
    d = len(S)
    first = [i for i in range(d - 1) for _ in range(d - 1 - i)]
    second = [j for j in range(1, d) for _ in range(j)]
    E1, E2 = np.eye(d)[first], np.eye(d)[second]
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    D = np.diag([S[i, j] for i, j in pairs])
    product: Floats = E1.T @ D @ E2 + E2.T @ D @ E1
    return product


Statement = Callable[[RewardProcess, Theory, np.random.Generator], Findings]
STATEMENTS: tuple[Statement, ...] = (
    equation_4,
    proposition_1,
    proposition_2,
    proposition_3,
    propositions_4_and_5,
    proposition_6,
)


def check(options: Theory) -> list[tuple[int, Finding]]:
    """Every statement on every process, with the number of the process."""
    found = []
    for number in range(options.processes):
        process = random_process(options.states, options.features, seed=options.seed * 1000 + number)
        for statement in STATEMENTS:
            rng = np.random.default_rng([options.seed, number, STATEMENTS.index(statement)])
            found += [(number, finding) for finding in statement(process, options, rng)]
    return found


def report(found: list[tuple[int, Finding]], processes: int) -> str:
    """Write what was computed on the first process, and on how many of all the verdict is the same."""
    lines = []
    for number, finding in found:
        if number > 0:
            continue
        same = [f.holds for _, f in found if (f.proposition, f.statement) == (finding.proposition, finding.statement)]
        count = sum(holds == finding.holds for holds in same)
        kind = f"Proposition {finding.proposition}" if finding.proposition.isdigit() else finding.proposition
        surprise = "" if all(holds == finding.expected for holds in same) else "  (unexpected)"
        lines += [
            f"{kind}: {finding.statement}",
            f"    computed: {finding.computed}",
            f"    verdict:  {finding.verdict} ({count} of {processes} processes){surprise}",
        ]
    return "\n".join(lines)


def write_table(folder: Path, found: list[tuple[int, Finding]]) -> None:
    """Write ``theory.csv``: every statement on every process."""
    rows = [
        [n, f.proposition, f.statement, f.computed, f.verdict, "holds" if f.expected else "does not hold"]
        for n, f in found
    ]
    columns = ("process", "proposition", "statement", "computed", "verdict", "expected")
    write_csv(folder / "theory.csv", columns, rows)
