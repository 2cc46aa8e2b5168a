"""What is compared: a form of the value function, an estimator of the decorrelating term, λ and the projection."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramian.core.errors import UserError, unknown
from gramian.linear.kernels import FULL, NONE, NORM, PLAIN, REDUCED, RUNNING, SINGLE, TWO_SAMPLE, Floats, Rule

FORMS = {"plain": PLAIN, "reduced": REDUCED, "full": FULL}
ESTIMATORS = {"none": NONE, "single": SINGLE, "two-sample": TWO_SAMPLE, "running": RUNNING, "norm": NORM}
INITIALISATIONS = ("identity", "orthogonal", "zero")
BETA = 0.01


@dataclass(frozen=True)
class Arm:
    """One way to learn a linear value function.

    Parameters
    ----------
    form
        ``plain`` (φᵀw), ``reduced`` (φᵀA·1, Eq. 3) or ``full`` (φᵀAθ, Eq. 2).
    estimator
        Of the decorrelating term: ``none``, ``single`` (the paper's), ``two-sample`` (unbiased), ``running`` (a running
        second-moment matrix) or ``norm`` (a control that shrinks features without regard to correlation). ``plain``
        takes ``none`` or ``single``, which then shrinks values.
    lam
        The coefficient λ of the term.
    projected
        Whether A is projected onto the orthogonal matrices after each step.

    Examples
    --------
    >>> Arm("reduced", "single", 0.01).name
    'reduced single'
    >>> Arm("reduced", "sinlge", 0.01)
    Traceback (most recent call last):
    ...
    gramian.core.errors.UserError: unknown estimator 'sinlge'; did you mean 'single'?
    """

    form: str
    estimator: str = "none"
    lam: float = 0.0
    projected: bool = False

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise unknown("form", self.form, FORMS)
        if self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)
        check_lambda(self.lam)
        if self.form == "plain" and (self.projected or self.estimator not in ("none", "single")):
            raise UserError(
                f"the plain form has no transform A: no projection and no {self.estimator!r} estimator; use 'reduced'"
            )
        if (self.estimator == "none") != (self.lam == 0):
            raise UserError(f"λ is {self.lam:g} with the estimator {self.estimator!r}; λ = 0 goes with 'none' alone")

    @property
    def name(self) -> str:
        """Form, estimator and projection in words, without λ."""
        words = [self.form] + ["projected"] * self.projected
        if self.estimator != "none":
            words.append("shrinkage" if self.form == "plain" else self.estimator)
        return " ".join(words)

    def alpha(self, transform_alpha: float, d: int) -> float:
        """Step size of this arm that matches ``transform_alpha``, the step size of A, with d features.

        φ1ᵀ·1 = dφ: w = A·1 learns at α·d, so the plain form gets α·d.

        Examples
        --------
        >>> Arm("plain").alpha(0.01, d=2), Arm("reduced").alpha(0.01, d=2)
        (0.02, 0.01)
        """
        return transform_alpha * d if self.form == "plain" else transform_alpha

    def rule(self, alpha: float, beta: float = BETA) -> Rule:
        """The arm for the kernels, with α of its own update and the rate β of a running second moment."""
        return Rule(FORMS[self.form], ESTIMATORS[self.estimator], self.projected, alpha, self.lam, beta)


def check_lambda(lam: float) -> None:
    """Raise `UserError` unless λ is a finite number, 0 or above."""
    if not (math.isfinite(lam) and lam >= 0):
        raise UserError(f"λ is {lam:g}; it must be a finite number, 0 or above")


def check_beta(beta: float) -> None:
    """Raise `UserError` unless the rate β of a running second moment lies in (0, 1]."""
    if not 0 < beta <= 1:
        raise UserError(f"beta is {beta:g}; it must lie in (0, 1]")


def check_alpha(alpha: float) -> None:
    """Raise `UserError` unless the step size α is a finite number above 0."""
    if not 0 < alpha < math.inf:
        raise UserError(f"alpha is {alpha:g}; it must be a number above 0")


def check_lambdas(lambdas: Sequence[float]) -> None:
    """Raise `UserError` unless ``lambdas`` are different numbers above 0; λ = 0 is always among the controls."""
    for lam in lambdas:
        check_lambda(lam)
        if lam == 0:
            raise UserError("λ = 0 is always run as a control; list only the λ above 0")
    if len(set(lambdas)) != len(lambdas) or not lambdas:
        raise UserError(f"the λ to try are {tuple(lambdas)}; give at least one, each once")


def initial_transform(initialisation: str, d: int, rng: np.random.Generator) -> Floats:
    """First A [d, d]: the identity, a random orthogonal matrix (Haar) or zero.

    Examples
    --------
    >>> A = initial_transform("orthogonal", 4, np.random.default_rng(0))
    >>> bool(np.allclose(A @ A.T, np.eye(4)))
    True
    """
    if initialisation == "identity":
        return np.eye(d)
    if initialisation == "zero":
        return np.zeros((d, d))
    if initialisation == "orthogonal":
        Q, R = np.linalg.qr(rng.standard_normal((d, d)))
        return np.ascontiguousarray(Q * np.sign(np.diag(R)))
    raise unknown("initialisation", initialisation, INITIALISATIONS)
