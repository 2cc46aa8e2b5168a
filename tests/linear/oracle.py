"""The linear algorithms written straight from the equations, with dense matrices: slow and obvious."""

import numpy as np


def offdiagonal(matrix):
    return matrix - np.diag(np.diag(matrix))


def polar(matrix):
    left, _, right = np.linalg.svd(matrix)
    return left @ right


class DenseLearner:
    """Same interface as `gramian.linear.learner.Learner`, for dense φ."""

    def __init__(self, arm, A, *, alpha, beta=0.01):
        self.arm, self.alpha, self.beta = arm, alpha, beta
        self.A, self.d = A.copy(), len(A)
        self.w, self.theta, self.S = A @ np.ones(self.d), np.ones(self.d), np.zeros_like(A)

    def value(self, phi):
        match self.arm.form:
            case "plain":
                return phi @ self.w
            case "reduced":
                return phi @ self.A @ np.ones(self.d)
            case "full":
                return phi @ self.A @ self.theta

    def q_step(self, phi, reward, next_phis, gamma, second=None):
        bootstrap = max([self.value(other) for other in next_phis], default=0.0)
        delta = reward + gamma * bootstrap - self.value(phi)
        if self.arm.form == "plain":
            shrink = self.arm.lam * (self.d - 1) / self.d**3 * self.value(phi) ** 3
            self.w = self.w + self.alpha * self.d * (delta - shrink) * phi
            return delta
        A = self.A
        own = np.outer(phi, phi)
        match self.arm.estimator:
            case "none":
                term = np.zeros_like(A)
            case "single":
                term = own @ A @ offdiagonal(A.T @ own @ A)
            case "norm":
                term = own @ A @ (A.T @ own @ A)
            case "two-sample":
                term = own @ A @ offdiagonal(A.T @ np.outer(second, second) @ A)
            case "two-sample-norm":
                term = own @ A @ (A.T @ np.outer(second, second) @ A)
            case "running":
                self.S = (1 - self.beta) * self.S + self.beta * (A.T @ own @ A)
                term = own @ A @ offdiagonal(self.S)
        theta = self.theta if self.arm.form == "full" else np.ones(self.d)
        self.A = A + self.alpha * (delta * np.outer(phi, theta) - self.arm.lam * term)
        if self.arm.form == "full":
            self.theta = self.theta + self.alpha * delta * A.T @ phi
        if self.arm.projected:
            self.A = polar(self.A)
        return delta
