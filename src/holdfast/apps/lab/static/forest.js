// Forest plots: estimates with their intervals, in rows.

import { axes, chart, legendRows, newFrame, svgElement } from "./charts.js";
import { linear, written } from "./scales.js";

const ROW = 18; // pixels of one estimate
const GAP = 12; // between two rows
const CHARACTER = 6.4; // mean width of one, in pixels
const ROOM = 26; // beside the longest name
const SHARE = 0.4; // of the width that names may take

// spec: {x: {label, domain?}, rows: [{label, estimates: [{label, tone, value, low, high}]}], zero?, description}
// Estimates of one name have one tone; the legend has each of them once.
export function forestChart(stage, options) {
  return chart(stage, { ...options, render: drawForest });
}

function drawForest(spec, width) {
  const seen = new Map(spec.rows.flatMap((row) => row.estimates.map((each) => [each.label, each])));
  const legend = legendRows([...seen.values()].filter((each) => each.label), width);
  const longest = Math.floor((width * SHARE - ROOM) / CHARACTER); // names are cut where they would leave the picture
  const names = spec.rows.map((row) => (row.label.length > longest ? `${row.label.slice(0, longest - 1)}…` : row.label));
  const margin = ROOM + CHARACTER * Math.max(4, ...names.map((name) => name.length));
  const height = spec.rows.reduce((sum, row) => sum + GAP + ROW * row.estimates.length, 0);
  const frame = { ...newFrame(width, height + 60, legend.rows), left: margin };
  const x = linear(spec.x.domain ?? range(spec.rows), [frame.left, frame.right]);
  const y = Object.assign(() => 0, { ticks: () => [] }); // rows have names instead of ticks
  const parts = [...axes({ x: spec.x, y: { label: "" } }, frame, x, y, false), ...legend.draw()];
  const zero = spec.zero ?? 0;
  if (x(zero) > frame.left && x(zero) < frame.right) {
    parts.push(svgElement("path", { class: "grid", d: `M${x(zero)} ${frame.top}V${frame.bottom}` }));
  }
  let top = frame.top;
  spec.rows.forEach((row, index) => {
    const middle = top + GAP / 2 + (ROW * row.estimates.length) / 2;
    const name = svgElement("text", { class: "label", x: frame.left - 8, y: middle + 4, "text-anchor": "end" });
    name.textContent = names[index];
    const whole = svgElement("title");
    whole.textContent = row.label;
    name.append(whole);
    parts.push(name);
    row.estimates.forEach((each, position) => parts.push(...estimate(each, x, top + GAP / 2 + ROW * (position + 0.5))));
    top += GAP + ROW * row.estimates.length;
  });
  return svgElement("svg", { viewBox: `0 0 ${width} ${frame.height}` }, parts);
}

function estimate(each, x, y) {
  const words = svgElement("title");
  const interval = Number.isFinite(each.low) ? ` (${written(each.low)} to ${written(each.high)})` : "";
  words.textContent = `${each.label ?? ""} ${written(each.value)}${interval}`;
  const parts = [];
  if (Number.isFinite(each.low) && Number.isFinite(each.high)) {
    parts.push(svgElement("path", { class: `line ${each.tone}`, d: `M${x(each.low).toFixed(1)} ${y}H${x(each.high).toFixed(1)}` }));
  }
  if (Number.isFinite(each.value)) {
    parts.push(svgElement("circle", { class: `mark ${each.tone}`, cx: x(each.value).toFixed(1), cy: y, r: 5 }, [words]));
  }
  return parts;
}

function range(rows) {
  const all = rows.flatMap((row) => row.estimates.flatMap((each) => [each.value, each.low, each.high])).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  const margin = 0.05 * (high - low || 1);
  return [low - margin, high + margin];
}
