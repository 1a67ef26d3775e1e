"""Tables with a cause and a consequence, and regressions as in a textbook, for tests of relations."""

import numpy as np
import pandas as pd

from holdfast.core import group_rows
from holdfast.core.moments import collect_moments, standardized
from holdfast.estimators.relations import find_relations
from holdfast.estimators.search.evidence import SquaredEvidence


def shifted_rows(seed=0, sizes=(300, 200, 150), features=4):
    """Correlated features; means, noise and one effect that differ between environments."""
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    mixture = np.eye(features) + 0.4 * random.standard_normal((features, features))
    x = random.standard_normal((len(codes), features)) @ mixture + codes[:, None] * np.linspace(-1, 1, features)
    effects = np.linspace(1.0, -0.5, features)
    y = x @ effects + 0.2 * codes * x[:, 1] + 2.0 * codes + (1 + 0.3 * codes) * random.standard_normal(len(codes))
    return x, y, codes


def cause_and_consequence(seed=0, environments=6, rows=500, strengths=(0.2, 1.2)):
    """A cause whose variance and mean change, and a consequence that follows the response more or less closely."""
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(environments), rows)
    spread, level = np.linspace(0.5, 2.0, environments)[codes], np.linspace(-1, 1, environments)[codes]
    cause = level + spread * random.standard_normal(len(codes))
    y = cause + random.standard_normal(len(codes))
    follower = np.linspace(*strengths, environments)[codes] * y + 0.6 * random.standard_normal(len(codes))
    return pd.DataFrame({"dose": cause, "marker": follower}), y, codes


def known_moments(x, y, codes, **settings):
    return standardized(collect_moments(np.asarray(x), y, group_rows(codes, len(y))), **settings)


def found_relations(x, y, codes, before=(), after=()):
    evidence, features = SquaredEvidence(known_moments(x, y, codes)), np.arange(np.shape(x)[1])
    return find_relations(evidence, np.isin(features, before), np.isin(features, after), np.zeros(len(features), bool))


def standard_units_of(x, y):
    return (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()


def textbook_regression(y, x):
    """Coefficients and standard errors with an intercept, as in a textbook."""
    design = np.column_stack([x, np.ones(len(y))])
    w = np.linalg.lstsq(design, y)[0]
    variance = np.sum((y - design @ w) ** 2) / (len(y) - design.shape[1])
    return w[:-1], np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))[:-1]


def within_environments(z, t, codes):
    """(rows, features + 1), each environment about its own means."""
    table = np.column_stack([z, t])
    return table - np.stack([table[codes == code].mean(0) for code in np.unique(codes)])[codes]
