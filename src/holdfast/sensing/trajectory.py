"""Results as a labelled data set, with the settings, versions and outcomes that belong to them."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from holdfast.core.run import Records
from holdfast.environments import Environments
from holdfast.sensing.outcome import SETTLING, Code, Outcome, outcomes
from holdfast.sensing.settings import Settings

MEANINGS = {
    "invariant": "invariant signal learned, tr(U*'PU*)/r1; 1 if A* of unit spectrum is learned",
    "spurious": "mean spurious signal learned, tr(V*'PV*)/r2",
    "residual": "||E||_F^2 with E = (I - U*U*' - V*V*') U, the rest if the subspaces do not overlap",
    "distance": "distance to the invariant solution, ||P - A*||_F",
    "pooled_distance": "distance to the pooled solution, ||P - A* - E A(e)||_F",
    "invariant_norm": "||R||, largest singular value of U'U*",
    "spurious_norm": "||Q||, largest singular value of U'V*",
    "residual_norm": "||E||_F of the positive factor",
    "singular_values": "singular values of R = U'U*",
    "phase": "1: invariant signal growing, 2: invariant signal of order one",
}


@dataclass(frozen=True)
class Trajectory:
    """What a simulation recorded.

    Attributes:
        data: the signals over (swept settings ..., seed, step), the outcome code and the step of divergence over
            (swept settings ..., seed).
        settings: what was simulated.
        versions: of the packages that computed it.
    """

    data: xr.Dataset
    settings: Settings
    versions: Mapping[str, str]

    @classmethod
    def of(cls, settings: Settings, records: Records, environments: Environments | None = None) -> "Trajectory":
        """Label the records of `execute`, with the environments that were given beside the settings."""
        axes = settings.axes
        seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        shape = (*map(len, axes.values()), len(seeds))
        dimensions = (*axes, "seed")
        variables: dict[str, Any] = {}
        for name, values in records.values.items():
            extra = ("step", "direction")[: values.ndim - 1]
            labelled = values.reshape(*shape, *values.shape[1:])
            variables[name] = ((*dimensions, *extra), labelled, {"long_name": MEANINGS[name]})
        codes = np.array([end.code for end in outcomes(records)], np.int8).reshape(shape)
        variables["outcome"] = (dimensions, codes, {"codes": ", ".join(f"{c.value}: {c.name.lower()}" for c in Code)})
        variables["diverged_at"] = (dimensions, records.diverged_at.reshape(shape), {"long_name": "step, or -1"})
        coordinates = {**{name: list(values) for name, values in axes.items()}, "seed": seeds, "step": records.steps}
        attributes = {} if environments is None else {"environments": repr(environments)}
        return cls(xr.Dataset(variables, coordinates, attributes), settings, versions())

    @property
    def final(self) -> xr.Dataset:
        """The last record of every run."""
        return self.data.isel(step=-1)

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcome of every run, in the order of `data`."""
        data, steps = self.data, self.data["step"].values
        values = {name: data[name].values.reshape(-1, len(steps)) for name in (*SETTLING, "phase")}
        return outcomes(Records(steps, values, data["diverged_at"].values.ravel()))

    def summary(self) -> dict[str, Any]:
        """Settings, outcomes and final signals as plain values, one entry a seed, nested by the swept settings."""
        final = self.final
        names = ("invariant", "spurious", "residual", "distance", "pooled_distance")
        axes = {name: list(values) for name, values in self.settings.axes.items()}
        return {
            **({"axes": axes} if axes else {}),
            "settings": self.settings.asdict(),
            "outcome": np.reshape([end.sentence for end in self.outcomes], final["outcome"].shape).tolist(),
            "final": {name: final[name].values.tolist() for name in names},
        }

    @property
    def survivors(self) -> xr.Dataset:
        """The last record of every run, NaN where the run diverged (xarray's medians and means then leave it out)."""
        return self.final.where(self.final["outcome"] != Code.DIVERGED)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write to a zarr directory (name ending in .zarr) or as a long table (.csv)."""
        path = Path(path)
        check_path(path, overwrite=overwrite)
        if path.suffix == ".csv":
            self.data.drop_vars("singular_values").to_dataframe().to_csv(path)
            return
        attributes = {"settings": json.dumps(self.settings.asdict()), "versions": json.dumps(dict(self.versions))}
        self.data.assign_attrs(attributes).to_zarr(path, mode="w", consolidated=False)

    @classmethod
    def load(cls, path: str | Path) -> "Trajectory":
        """Read what `save` wrote to a zarr directory."""
        if not (Path(path) / "zarr.json").is_file():
            raise ValueError(f"path must be a .zarr folder written by Trajectory.save, got {str(path)!r}")
        data = xr.open_zarr(path, consolidated=False).load()
        settings = json.loads(data.attrs.pop("settings"))
        return cls(data, Settings(**settings), json.loads(data.attrs.pop("versions")))


def check_path(path: Path, *, overwrite: bool = False) -> None:
    """Refuse a path that `Trajectory.save` could not write to, before the work is done.

    What exists is only ever replaced if `overwrite` is set, and a folder only if it is a zarr store.
    """
    if path.suffix not in (".zarr", ".csv"):
        raise ValueError(f"out must end in .zarr or .csv, got {str(path)!r}")
    if not path.parent.is_dir():
        raise ValueError(f"out must lie in a folder that exists, got {str(path)!r}")
    replaceable = (path / "zarr.json").is_file() if path.suffix == ".zarr" else path.is_file()
    if path.exists() and not (overwrite and replaceable):
        way = "overwrite it" if replaceable else "choose another name"
        raise ValueError(f"out must not exist yet ({way}), got {str(path)!r}")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"out must lie in a folder that can be written to, got {str(path)!r}")


def versions() -> dict[str, str]:
    """Of the packages that compute."""
    packages = {name: version(name) for name in ("holdfast", "jax", "jaxlib", "numpy")}
    return {**packages, "python": platform.python_version(), "platform": jax.default_backend()}
