"""Results as a labelled data set, with their settings, versions and outcomes."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from holdfast.core.fingerprint import COMPUTING, installed_version
from holdfast.core.names import readable
from holdfast.core.outcome import SETTLING, Code, Outcome, outcomes
from holdfast.core.run import Records
from holdfast.core.validation import require
from holdfast.core.writing import check_output, replacing
from holdfast.sensing.builder import Parts
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import recorded_signals

SUFFIXES = (".zarr", ".csv")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The result of a simulation.

    Attributes:
        data: the signals over (axes of the sweep ..., seed, step), the outcome code and the step of divergence over
            (axes of the sweep ..., seed).
        settings: what was simulated.
        versions: of the packages that computed it.
        outcomes: the outcome of every run, in the order of `data`.

    Two trajectories are equal only if they are one object: compare their `data` with `xarray.testing`.

    Example:
        >>> from holdfast.sensing.simulation import simulate
        >>> settings = Settings(dimension=10, steps=200, seeds=4, oracle="population", heterogeneity=(1.0, 6.0))
        >>> trajectory = simulate(settings)
        >>> trajectory.data["spurious"].dims, trajectory.axes
        (('heterogeneity', 'seed', 'step'), {'heterogeneity': [1.0, 6.0]})
    """

    data: xr.Dataset
    settings: Settings
    versions: Mapping[str, str]
    outcomes: list[Outcome]

    @classmethod
    def of(cls, settings: Settings, records: Records, parts: Parts | None = None) -> "Trajectory":
        """Label the records of `execute`.

        Args:
            settings: what was simulated.
            records: of all runs.
            parts: what was given in addition to the settings. The axes of its sweep follow those of the settings, and
                its objects are noted in the attributes of `data`.
        """
        parts = parts or Parts()
        axes = {**settings.axes, **parts.sweep}
        seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        shape = (*map(len, axes.values()), len(seeds))
        signals = recorded_signals(records)
        variables = {
            name: (
                (*axes, "seed", *signals.dimensions[name]),
                values.reshape(*shape, *values.shape[1:]),
                {"long_name": signals.meanings[name]},
            )
            for name, values in signals.values.items()
        }
        coordinates = {**{name: list(values) for name, values in axes.items()}, "seed": seeds, **signals.coordinates}
        own = {name: readable(part) for name, part in vars(parts).items() if name != "sweep" and part is not None}
        return cls(xr.Dataset(variables, coordinates, own), settings, versions(), outcomes(records))

    @property
    def axes(self) -> dict[str, list[float]]:
        """The values of everything that was swept, by name: settings, then arguments of an algorithm."""
        return {str(name): self.data[name].values.tolist() for name in self.data["outcome"].dims[:-1]}

    @property
    def final(self) -> xr.Dataset:
        """The last record of every run."""
        return self.data.isel(step=-1)

    def summary(self) -> dict[str, Any]:
        """Settings, outcomes and final signals as plain values, one entry per seed, nested by the swept settings."""
        final = self.final
        names = ("invariant", "spurious", "residual", "distance", "pooled_distance")
        return {
            **({"axes": self.axes} if self.axes else {}),
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
        check_output(path, SUFFIXES, overwrite=overwrite, argument="path")
        if path.suffix.lower() == ".csv":
            with replacing(path) as unfinished:
                self.data.drop_vars("singular_values").to_dataframe().to_csv(unfinished)
            return
        attributes = {"settings": json.dumps(self.settings.asdict()), "versions": json.dumps(dict(self.versions))}
        with replacing(path) as unfinished:
            self.data.assign_attrs(attributes).to_zarr(unfinished, mode="w", consolidated=False)

    @classmethod
    def load(cls, path: str | Path) -> "Trajectory":
        """Read what `save`, or `holdfast simulate --out`, wrote to a zarr directory."""
        written, missing = (Path(path) / "zarr.json").is_file(), "" if Path(path).exists() else ", which does not exist"
        require(written, "path must be a .zarr folder written by Trajectory.save", f"{str(path)!r}{missing}")
        data = xr.open_zarr(path, consolidated=False).load()
        if "finished" in data:
            data, settings, versions = _of_cells(path, data)
        else:
            settings, versions = json.loads(data.attrs.pop("settings")), json.loads(data.attrs.pop("versions"))
        steps = data["step"].values
        values = {name: data[name].values.reshape(-1, len(steps)) for name in (*SETTLING, "phase")}
        ends = outcomes(Records(steps, values, data["diverged_at"].values.ravel()))
        return cls(data, Settings(**settings), versions, ends)


def _of_cells(path: str | Path, data: xr.Dataset) -> tuple[xr.Dataset, dict[str, Any], dict[str, str]]:
    """A simulation that was computed cell by cell: data, settings and versions."""
    found = data.attrs
    whole = found.get("record") == "trajectories" and found.get("program", "").endswith(":matrix_sensing")
    require(whole, "path must be a simulation with whole trajectories (see `holdfast simulate --out`)", repr(str(path)))
    finished = data["finished"]
    share = f"{str(path)!r} with {int(finished.sum())} of {finished.size} runs"
    require(bool(finished.all()), "path must be a finished simulation (the same command resumes it)", share)
    axes = {str(name): tuple(data[name].values.tolist()) for name in finished.dims[:-1]}
    settings = {**found["settings"], **axes, "seed": found["seed"], "seeds": data.sizes["seed"]}
    return data.drop_vars(["finished", "seconds"]).drop_attrs(deep=False), settings, found["versions"]


def versions() -> dict[str, str]:
    """The versions of the packages that compute."""
    packages = {name: installed_version(name) for name in ("holdfast", *COMPUTING)}
    return {**packages, "python": platform.python_version(), "platform": jax.default_backend()}
