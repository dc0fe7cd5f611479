"""`torch.distributions.constraints`: sets of values, and the check whether a tensor lies in one."""

import torch


class Constraint:
    is_discrete = False
    event_dim = 0
    _shown = ()

    def check(self, value):
        raise NotImplementedError

    def __repr__(self):
        if not self._shown:
            return type(self).__name__[1:] + "()"
        return type(self).__name__[1:] + "(" + ", ".join(f"{name}={getattr(self, name)}" for name in self._shown) + ")"


def _is_wrong(valid):
    """Reads whether a check failed. A value that is not known passes."""
    answer = valid.all()
    if answer.is_cuda:
        return False
    value = answer.item()
    return not getattr(value, "is_unknown", False) and not value


class _IndependentConstraint(Constraint):
    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        kept = result.dim() - self.reinterpreted_batch_ndims
        if kept < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        result = result.reshape(result.shape[:kept] + (-1,))
        result = result.all(-1)
        return result

    def __repr__(self):
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Interval(Constraint):
    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _Real(Constraint):
    def check(self, value):
        return value == value


class _GreaterThan(Constraint):
    _shown = ("lower_bound",)

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return self.lower_bound < value


class _LessThan(Constraint):
    _shown = ("upper_bound",)

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return value < self.upper_bound


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return torch.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        value_tril = value.tril()
        lower_triangular = (value_tril == value).view(value.shape[:-2] + (-1,)).min(-1)[0]
        positive_diagonal = (value.diagonal(dim1=-2, dim2=-1) > 0).min(-1)[0]
        return lower_triangular & positive_diagonal


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        return torch.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        square_check = super().check(value)
        if _is_wrong(square_check):
            return square_check
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        sym_check = super().check(value)
        if _is_wrong(sym_check):
            return sym_check
        return torch.linalg.cholesky_ex(value).info.eq(0)


independent, integer_interval, interval = _IndependentConstraint, _IntegerInterval, _Interval
greater_than, less_than = _GreaterThan, _LessThan
boolean, real, simplex = _Boolean(), _Real(), _Simplex()
real_vector, positive, unit_interval = independent(real, 1), _GreaterThan(0.0), _Interval(0.0, 1.0)
lower_cholesky, positive_definite = _LowerCholesky(), _PositiveDefinite()
