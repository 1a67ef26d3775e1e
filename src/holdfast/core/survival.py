"""Waiting times, some of them censored by the end of the run."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv  # scipy comes with jax

from holdfast.core.statistics import LOWER, NORMAL_QUANTILE, UPPER, Estimate


def event_rate(times: ArrayLike, happened: ArrayLike) -> Estimate:
    """Events per unit of time, with the exact 95 % interval for a Poisson number of events (Garwood, 1936).

        rate = events / total time,    bounds = quantiles of chi^2 / (2 total time)

    For events at a constant rate, censored times count as well as complete ones. The reciprocal is the mean waiting
    time.

    Args:
        times: time waited, until the event or the end of the run.
        happened: whether the event ended the waiting.

    Example:
        >>> event_rate([10.0, 30.0, 60.0], [True, True, False]).value
        0.02
    """
    exposure, events = float(np.sum(times)), int(np.sum(happened))
    if exposure <= 0:
        return Estimate(0.0, 0.0, np.inf)
    # The chi^2 quantiles, halved, are those of the gamma law.
    low = gammaincinv(events, LOWER) if events else 0.0
    high = gammaincinv(events + 1, UPPER)
    return Estimate(events / exposure, float(low / exposure), float(high / exposure))


class Survival(NamedTuple):
    """The share that has not yet had the event, a step function.

    Attributes:
        times: of the events, ascending, after a 0.
        share: from each of these times on.
        low: lower end of its interval.
        high: upper end.

    Example:
        >>> curve = kaplan_meier([1.0, 2.0], [True, True])
        >>> curve.times.tolist(), curve.share.tolist()
        ([0.0, 1.0, 2.0], [1.0, 0.5, 0.0])
    """

    times: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray


def kaplan_meier(times: ArrayLike, happened: ArrayLike) -> Survival:
    """The survival curve of Kaplan and Meier (1958), with the interval of 95 % of Greenwood on the log-log scale.

        S(t) = prod_{t_i <= t} (1 - d_i / n_i)

    Args:
        times: time waited, until the event or the end of the run.
        happened: whether the event ended the waiting.

    Example:
        >>> kaplan_meier([1.0, 2.0, 3.0], [True, False, True]).share.round(3).tolist()
        [1.0, 0.667, 0.0]
    """
    waited, events = np.asarray(times, float), np.asarray(happened, bool)
    event_times = np.unique(waited[events])
    at_risk = (waited >= event_times[:, None]).sum(1)
    ended = ((waited == event_times[:, None]) & events).sum(1)
    share = np.cumprod(1 - ended / np.maximum(at_risk, 1))
    variance = np.cumsum(ended / np.maximum(at_risk * (at_risk - ended), 1))
    # On the log(-log) scale the interval stays within 0 and 1; at 0 and 1 themselves it has no width.
    inner = (share > 0) & (share < 1)
    log_share = np.log(np.where(inner, share, 0.5))
    half = NORMAL_QUANTILE * np.sqrt(variance) / np.abs(log_share)
    low, high = (np.where(inner, np.exp(log_share * np.exp(sign * half)), share) for sign in (1, -1))
    start = np.ones(1)
    curves = (np.concatenate([start, part]) for part in (share, low, high))
    return Survival(np.concatenate([[0.0], event_times]), *curves)
