// Singular values, ranks and errors of deep linear networks, and offshoots of their runs.

import { lineChart } from "../charts.js";
import { newButton } from "../panel.js";
import { written } from "../scales.js";

const LEAST_RATIO = 1e-4; // lower ends of logarithmic axes
const LEAST_ERROR = 1e-7;
const OFFSHOOTS = 5; // of each run, when the button asks for them
const TONES = ["invariant", "spurious", "other", "other"];

export function create(stage, { choose }) {
  const ratio = lineChart(stage, { title: "Second singular value", note: "relative to the first", name: "jumps-ratio" });
  const error = lineChart(stage, { title: "Test error", note: "on hidden entries", name: "jumps-error" });
  const ranks = lineChart(stage, { title: "Ranks", note: "share of the runs at each", name: "jumps-ranks" });
  const values = lineChart(stage, { title: "Singular values of one run", name: "jumps-values" });
  const button = newButton("", () => choose({ offshoots: button.dataset.on ? 0 : OFFSHOOTS }));
  const row = document.createElement("p");
  row.className = "buttons";
  const words = document.createElement("small");
  words.textContent = "Offshoots continue the runs with another step size and ridge, by default smaller ones.";
  row.append(button, words);
  error.figure.append(row);

  function draw(data, settings) {
    button.textContent = settings.offshoots ? "Remove the offshoots" : "Add offshoots";
    if (settings.offshoots) button.dataset.on = "yes"; else delete button.dataset.on;
    if (!data.curves) return;
    const curves = { ...data.curves, end: settings.steps }; // the first curves are those of a part of the steps
    ratio.draw(ratioSpec(curves));
    error.draw(errorSpec(curves));
    ranks.draw(ranksSpec(curves));
    values.setNote(`seed ${curves.single.seed}, the last to jump`);
    values.draw(valuesSpec(curves));
  }
  return { draw, numbers };
}

function median(rows, column) {
  const sorted = rows.map((row) => row[column]).filter((value) => value !== null).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor((sorted.length - 1) / 2)] : null;
}

const medians = (rows) => (rows[0] ?? []).map((_, column) => median(rows, column));
const last = (values) => written(values[values.length - 1]);

// A little longer than the runs, so that the last number of the axis has room.
function stepAxis(data, more = 0) {
  return { label: "step t", domain: [0, 1.04 * (data.end + more)] };
}

// All runs as thin lines, and the median of them.
function bundle(steps, rows, tone) {
  return [
    ...rows.map((row, index) => ({ label: index === 0 ? "each run" : "", tone, x: steps, y: row, thin: true })),
    { label: "median", tone, x: steps, y: medians(rows) },
  ];
}

function ratioSpec(data) {
  return {
    x: stepAxis(data), y: { label: "s₂/s₁", log: true, domain: [LEAST_RATIO, 1.2] }, series: bundle(data.steps, data.ratio, "spurious"),
    description: `After ${last(data.steps)} steps the median of s₂/s₁ is ${last(medians(data.ratio))}.`,
  };
}

function errorSpec(data) {
  const { steps, length, begin, end, rank, true_rank: right } = data.offshoots;
  const series = bundle(data.steps, data.test_error, "spurious");
  // Offshoots as straight lines from where they leave to where they end; a gap comes after each.
  for (const value of [...new Set(rank.flat())].sort()) {
    const line = { x: [], y: [] };
    rank.forEach((row, run) => row.forEach((each, branch) => {
      if (each !== value) return;
      line.x.push(steps[branch], steps[branch] + length, null);
      line.y.push(begin[run][branch], end[run][branch], null);
    }));
    series.push({ ...line, label: `offshoots from rank ${value}`, tone: value === right ? "invariant" : "other", dash: value === right ? 0 : 1, thin: true });
  }
  const all = [data.test_error, end, begin].flat(2).filter((value) => value > 0);
  if (all.length === 0) all.push(1); // nothing is hidden, or everything has diverged
  const branches = steps.length ? ` ${steps.length} offshoots of each run.` : "";
  return {
    x: stepAxis(data, steps.length ? length : 0),
    y: { label: "test error", log: true, domain: [Math.max(LEAST_ERROR, 0.7 * Math.min(...all)), 1.5 * Math.max(...all)] },
    series, description: `After ${last(data.steps)} steps the median test error is ${last(medians(data.test_error))}.${branches}`,
  };
}

function ranksSpec(data) {
  const found = Object.entries(data.ranks);
  const series = found.map(([rank, shares], index) => ({ label: `rank ${rank}`, tone: TONES[index], dash: index, x: data.steps, y: shares }));
  return {
    x: stepAxis(data), y: { label: "share of runs", domain: [0, 1.04] }, series,
    description: found.map(([rank, shares]) => `${written(100 * shares[shares.length - 1])} % of the runs end at rank ${rank}.`).join(" "),
  };
}

function valuesSpec(data) {
  const series = data.single.singular_values.map((values, index) => ({ label: `s${"₁₂₃₄"[index]}`, tone: TONES[index], dash: index, x: data.steps, y: values }));
  const top = Math.max(1, ...data.single.singular_values.flat().filter(Number.isFinite));
  return {
    x: stepAxis(data), y: { label: "singular value", domain: [0, 1.05 * top] }, series,
    description: series.map((each) => `${each.label} ends at ${last(each.y)}.`).join(" "),
  };
}

function numbers({ curves = {} }) {
  const columns = { step: curves.steps ?? [] };
  for (const name of ["ratio", "test_error", "train_error"]) {
    (curves[name] ?? []).forEach((row, run) => { columns[`${name}_run_${run + 1}`] = row; });
  }
  for (const [rank, shares] of Object.entries(curves.ranks ?? {})) columns[`share_at_rank_${rank}`] = shares;
  const { steps = [], end = [] } = curves.offshoots ?? {};
  columns.offshoot_step = steps;
  end.forEach((row, run) => { columns[`offshoot_test_error_run_${run + 1}`] = row; });
  return columns;
}
