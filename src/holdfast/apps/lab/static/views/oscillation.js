// HeteroSGD beside PooledSGD, and the plane of step size and heterogeneity.

import { lineChart, planeChart } from "../charts.js";
import { written } from "../scales.js";

const LEAST_SHARE = 1e-7; // lower end of a logarithmic axis
const LARGEST_EXPONENT = 0.15; // from here on, cells of the map have their full colour
const NAMES = { pooled: "PooledSGD", full: "Full batches" };

export function create(stage, { choose }) {
  const note = "median, 10 to 90 % of runs";
  const charts = {
    hetero: lineChart(stage, { title: "HeteroSGD", note, name: "oscillation-hetero" }),
    pooled: lineChart(stage, { title: "PooledSGD", note, name: "oscillation-pooled" }),
  };
  const plane = planeChart(stage, {
    title: "Phase diagram", name: "oscillation-plane", wide: true,
    note: "exponent λ of a small spurious signal; the circle is this setting, click to move it",
  });
  const pick = (x, y) => choose({ step_size: Number(x.toPrecision(3)), heterogeneity: Number(Math.max(0, y).toFixed(1)) });

  function draw(data, settings) {
    charts.pooled.setTitle(NAMES[settings.batching]);
    if (data.trajectories) {
      const domain = shareDomain(data.trajectories, settings.scale === "log");
      for (const [name, chart] of Object.entries(charts)) chart.draw(signals(data.trajectories[name], settings, domain));
    }
    if (data.map) plane.draw(planeSpec(data, settings, pick));
  }
  return { draw, numbers };
}

function shareDomain(trajectories, log) {
  const runs = Object.values(trajectories);
  const highs = runs.flatMap((run) => [...run.invariant.high, ...run.spurious.high, ...run.one.spurious]);
  const top = Math.min(12, Math.max(1.1, ...highs.filter(Number.isFinite)) * 1.04);
  return log ? [LEAST_SHARE, Math.max(2, top)] : [0, top];
}

function signals(run, settings, domain) {
  const series = ["invariant", "spurious"].flatMap((name) => [
    { label: name, tone: name, x: run.steps, y: run[name].median, low: run[name].low, high: run[name].high, dash: name === "spurious" ? 1 : 0 },
    { label: name === "spurious" ? "one of the runs" : "", tone: name, x: run.steps, y: run.one[name], thin: true },
  ]);
  const end = (name) => written(run[name].median[run.steps.length - 1]);
  const lost = run.diverged ? ` ${run.diverged} of ${run.runs} runs diverged.` : "";
  return {
    x: { label: "step t" }, y: { label: "share of the signal learned", log: settings.scale === "log", domain },
    series, description: `After ${run.steps[run.steps.length - 1]} steps the median invariant share is ${end("invariant")}, the spurious ${end("spurious")}.${lost}`,
  };
}

function planeSpec(data, settings, pick) {
  const { step_size: x, heterogeneity: y, exponent } = data.map;
  const strength = (value) => (value === null ? 0.75 : 0.06 + 0.69 * Math.min(1, Math.abs(value) / LARGEST_EXPONENT));
  return {
    height: 320,
    x: { label: "step size η", log: true, domain: [x[0], x[x.length - 1]] },
    y: { label: "heterogeneity M", domain: [y[0], y[y.length - 1]] },
    cells: { x, y, values: exponent, tone: (value) => (value > 0 ? "spurious" : "invariant"), strength },
    legend: [{ label: "λ < 0: dies out", tone: "invariant", cell: true }, { label: "λ > 0: grows", tone: "spurious", cell: true }],
    curves: data.curves, point: [settings.step_size, settings.heterogeneity], pick,
    description: `The point is at step size ${written(settings.step_size)} and heterogeneity ${written(settings.heterogeneity)}; the exponent there is ${written(data.point?.exponent)}.`,
  };
}

function numbers(data) {
  const columns = { step: data.trajectories?.hetero.steps ?? [] };
  for (const [name, run] of Object.entries(data.trajectories ?? {})) {
    for (const signal of ["invariant", "spurious"]) {
      for (const [quantile, values] of Object.entries(run[signal])) columns[`${name}_${signal}_${quantile}`] = values;
    }
  }
  return columns;
}
