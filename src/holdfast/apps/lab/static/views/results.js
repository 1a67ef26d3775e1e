// Results: a reproduction claim by claim, or a sweep along its axes.

import { lineChart, planeChart } from "../charts.js";
import { saveAddress } from "../downloads.js";
import { newButton, newPanel } from "../panel.js";
import { written } from "../scales.js";
import { dataTable, sentences } from "../tables.js";

const TONES = ["invariant", "spurious", "other"]; // of lines; then with other dashes
const GOOD = /^holds/;
const BAD = /^does not hold/;
const HOW = [
  "holdfast reproduce figure_3 --quick --out results, and then holdfast lab --results results: claims and figures.",
  "holdfast sweep examples/sweep.toml --out runs, and then holdfast lab --results runs: lines and maps.",
];
const WIDE = 100; // values that span a larger factor are drawn by their logarithms

export function create(stage, { choose, offer, reveal }) {
  const how = sentences(stage, { title: "How results get here" });
  const claims = dataTable(stage, { title: "Claims", note: "choose a claim to see the figure of its experiment", tall: true });
  const { panel: figure, heading, setTitle } = newPanel(stage, { title: "Figure", wide: true, figure: true });
  let drawn = null;
  const save = newButton("Save the figure", () => saveAddress(drawn.source, `${drawn.name}.${drawn.source.startsWith("data:image/svg") ? "svg" : "png"}`));
  const corner = document.createElement("span");
  corner.className = "save";
  corner.append(save);
  heading.append(corner);
  const picture = document.createElement("img");
  picture.className = "figure";
  const frame = document.createElement("div");
  frame.className = "data"; // it scrolls where the window is narrower than its labels can bear
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "Figure");
  frame.append(picture);
  figure.append(frame);
  const lines = lineChart(stage, { title: "Sweep", name: "sweep", wide: true });
  const plane = planeChart(stage, { title: "Sweep", name: "sweep-map", wide: true });

  function draw(data, settings) {
    reveal("Claims", data.kind === "reproduction");
    reveal("Sweep", data.kind === "sweep");
    how.draw(data.kind === "none" ? HOW : []);
    claims.hide(!data.claims);
    if (data.claims) listClaims(data, settings);
    figure.hidden = !data.figure;
    if (data.figure) {
      drawn = data.figure;
      setTitle(label(data.figure.name));
      picture.src = data.figure.source;
      picture.alt = `The figure of ${label(data.figure.name)}; its claims are in the table above.`;
    }
    lines.figure.hidden = !data.drawn?.series;
    plane.figure.hidden = !data.drawn?.values;
    if (data.axes) offerAxes(data);
    if (data.drawn?.series) lines.draw(lineSpec(data.drawn));
    if (data.drawn?.values) drawMap(data.drawn);
  }

  function listClaims(data, settings) {
    offer("verdict", unique(data.claims.map((claim) => claim.verdict)));
    offer("source", unique(data.claims.flatMap((claim) => claim.source.split("; "))));
    offer("figure", data.figures ?? []);
    const wanted = data.claims.filter((claim) => matches(claim, settings));
    claims.setNote(`${wanted.length} of ${data.claims.length} claims; choose one to see the figure of its experiment`);
    claims.draw(CLAIM_COLUMNS, wanted, (claim) => {
      if (data.figures?.includes(claim.experiment)) { choose({ figure: claim.experiment }); figure.scrollIntoView({ block: "nearest" }); }
    });
  }

  function offerAxes(data) {
    offer("x", Object.keys(data.axes));
    offer("y", Object.keys(data.axes));
    offer("quantity", data.quantities ?? []);
  }

  function drawMap(drawn) {
    const { spec, low, high } = planeSpec(drawn);
    plane.setNote(`from ${written(low)} (pale) to ${written(high)} (strong); blank where no run is left`);
    plane.draw(spec);
  }
  return { draw, numbers };
}

const CLAIM_COLUMNS = [
  { name: "statement", label: "Claim", long: true },
  { name: "verdict", label: "Verdict", tone: (row) => (GOOD.test(row.verdict) ? "good" : BAD.test(row.verdict) ? "bad" : "aside") },
  { name: "measured", label: "Measured", words: (_, { measured }) => (measured.value === null ? "–" : `${written(measured.value)}${interval(measured)}`) },
  { name: "allowed", label: "Allowed", number: true, words: allowed },
  { name: "source", label: "Source" },
  { name: "why", label: "Why", long: true, words: (_, row) => [row.why, row.settings && `Settings: ${row.settings}`, row.conditions.missed?.length ? `Not met: ${row.conditions.missed.join("; ")}` : ""].filter(Boolean).join(". ") },
];

function interval({ low, high }) {
  return low === null || low === high ? "" : ` (${written(low)} to ${written(high)})`;
}

function allowed([low, high]) {
  if (low === null) return `at most ${written(high)}`;
  return high === null ? `at least ${written(low)}` : `${written(low)} to ${written(high)}`;
}

function matches(claim, settings) {
  const words = settings.search.toLowerCase();
  const text = `${claim.id} ${claim.statement} ${claim.source} ${claim.why} ${claim.settings}`.toLowerCase();
  return (!settings.verdict || claim.verdict === settings.verdict)
    && (!settings.source || claim.source.split("; ").includes(settings.source))
    && text.includes(words);
}

function unique(values) { return [...new Set(values)].sort(); }

function label(name) { return name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase()); }

function axisLabel(axis) {
  const named = axis.labels ? ` (${axis.labels.map((words, index) => `${index}: ${words}`).join(", ")})` : "";
  return `${axis.name.replaceAll("_", " ")}${named}`;
}

function lineSpec(drawn) {
  const all = drawn.series.flatMap((each) => [each.y, each.low, each.high].filter(Boolean).flat()).filter(Number.isFinite);
  const positive = all.filter((value) => value > 0);
  const log = !drawn.is_share && positive.length === all.length && Math.max(...all) > WIDE * Math.min(...all);
  const [low, high] = all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
  const room = 0.04 * (high - low || 1);
  const series = drawn.series.map((each, index) => ({
    label: each.label, tone: TONES[index % TONES.length], dash: Math.floor(index / TONES.length), x: drawn.x.values, y: each.y,
    ...(each.low ? { low: each.low, high: each.high } : {}),
  }));
  return {
    height: 340, series, x: { label: axisLabel(drawn.x), log: drawn.x.log },
    y: { label: drawn.label, log, domain: drawn.is_share ? [0, 1] : log ? [low, high] : [low - room, high + room] },
    description: `${drawn.label} over ${drawn.x.name}, from ${written(low)} to ${written(high)}. ${drawn.title}`,
  };
}

function planeSpec(drawn) {
  const all = drawn.values.flat().filter(Number.isFinite);
  const [low, high] = all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
  const log = low > 0 && high > WIDE * low;
  const share = (value) => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low || 1));
  const spec = {
    height: 380, curves: [],
    x: { label: axisLabel(drawn.x), log: drawn.x.log, domain: whole(drawn.x) },
    y: { label: axisLabel(drawn.y), log: drawn.y.log, domain: whole(drawn.y) },
    cells: { x: drawn.x.values, y: drawn.y.values, values: drawn.values, tone: () => "invariant", strength: (value) => (Number.isFinite(value) ? 0.05 + 0.9 * share(value) : 0), ends: (scale) => scale.range },
    description: `${drawn.label} over ${drawn.x.name} and ${drawn.y.name}, from ${written(low)} to ${written(high)}. ${drawn.title}`,
  };
  return { spec, low, high };
}

// From half a cell before the first value to half a cell after the last, so that all cells are whole.
function whole({ values, log }) {
  const [to, from] = log ? [Math.log, Math.exp] : [(value) => value, (value) => value];
  const at = values.map(to);
  const last = at.length - 1;
  const [before, after] = last > 0 ? [(at[1] - at[0]) / 2, (at[last] - at[last - 1]) / 2] : [0.5, 0.5];
  return [from(at[0] - before), from(at[last] + after)];
}

function numbers(data) {
  if (data.claims) {
    const rows = data.claims.map(({ measured, allowed: [allowed_low, allowed_high], ...claim }) => ({ ...claim, ...measured, allowed_low, allowed_high }));
    const names = ["id", "experiment", "source", "statement", "verdict", "value", "low", "high", "allowed_low", "allowed_high", "settings", "why"];
    return Object.fromEntries(names.map((name) => [name, rows.map((row) => row[name])]));
  }
  if (!data.drawn) return { nothing: [] };
  const { x, y } = data.drawn;
  const values = (axis) => axis.labels ?? axis.values;
  if (y) {
    const points = data.drawn.values.flatMap((row, j) => row.map((value, i) => [values(x)[i], values(y)[j], value]));
    return { [x.name]: points.map((point) => point[0]), [y.name]: points.map((point) => point[1]), value: points.map((point) => point[2]) };
  }
  const columns = { [x.name]: values(x) };
  for (const each of data.drawn.series) {
    columns[each.label] = each.y;
    if (each.low) { columns[`${each.label} low`] = each.low; columns[`${each.label} high`] = each.high; }
  }
  return columns;
}
