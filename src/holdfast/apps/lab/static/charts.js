// Charts as SVG: lines with bands, and a plane with a map, curves and a point. Colours come from the style sheet.

import { saveButtons } from "./downloads.js";
import { newPanel } from "./panel.js";
import { linear, logarithmic, written } from "./scales.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const MARGIN = { top: 8, right: 14, bottom: 42, left: 66 };
const LEGEND_ROW = 20;
const HEIGHT = 260; // of a frame, unless a chart says otherwise
const CHARACTER = 6.2; // mean width of one in legends, in pixels
const DASHES = ["", "7 4", "2 4", "9 3 2 3"]; // curves are told apart without colour

export function svgElement(tag, attributes = {}, children = []) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A figure with a title and buttons for saving; `render(spec, width)` makes its SVG, again when the width changes.
export function chart(stage, { title, note = "", name, wide = false, render }) {
  const { panel: figure, heading, setTitle, setNote } = newPanel(stage, { title, note, wide, figure: true });
  const holder = document.createElement("div");
  heading.append(saveButtons(name, () => holder.querySelector("svg"), title));
  figure.append(holder);
  let latest = null;
  const draw = (spec) => {
    latest = spec;
    const width = Math.max(240, holder.clientWidth);
    const picture = render(spec, width);
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `${title}. ${spec.description ?? ""}`);
    holder.replaceChildren(picture);
  };
  let before = 0;
  new ResizeObserver(() => {
    if (latest !== null && holder.clientWidth !== before) draw(latest);
    before = holder.clientWidth;
  }).observe(holder);
  return { figure, draw, setTitle, setNote };
}

// Lines over a common x, each perhaps with a band from `low` to `high`.
// spec: {x: {label}, y: {label, log, domain}, series: [{label, tone, x, y, low, high, thin}], description}
export function lineChart(stage, options) {
  return chart(stage, { ...options, render: drawLines });
}

function drawLines(spec, width) {
  const legend = legendRows(spec.series.filter((each) => each.label), width);
  const frame = newFrame(width, spec.height ?? HEIGHT, legend.rows);
  const xs = spec.series.flatMap((each) => [each.x[0], each.x[each.x.length - 1]]);
  const x = (spec.x.log ? logarithmic : linear)(spec.x.domain ?? [Math.min(...xs), Math.max(...xs)], [frame.left, frame.right]);
  const y = (spec.y.log ? logarithmic : linear)(spec.y.domain, [frame.bottom, frame.top]);
  const [clip, inside] = clipped(frame);
  for (const each of spec.series) {
    if (each.low) inside.append(svgElement("path", { class: `band ${each.tone}`, d: bandPath(each, x, y) }));
  }
  for (const each of spec.series) {
    const kind = each.thin ? "thin" : "line";
    const attributes = { class: `${kind} ${each.tone}`, d: linePath(each.x, each.y, x, y) };
    if (each.dash) attributes["stroke-dasharray"] = DASHES[each.dash];
    inside.append(svgElement("path", attributes));
  }
  const picture = svgElement("svg", { viewBox: `0 0 ${width} ${frame.height}` }, [
    clip, ...axes(spec, frame, x, y), inside, ...legend.draw(),
  ]);
  picture.append(...readout(picture, spec, frame, x));
  return picture;
}

// The values under the pointer, at the top of the frame.
function readout(picture, spec, frame, x) {
  const lines = spec.series.filter((each) => each.label && !each.thin);
  const rule = svgElement("path", { class: "axis", visibility: "hidden" });
  const words = svgElement("text", { class: "label", visibility: "hidden", x: (frame.left + frame.right) / 2, y: frame.top + 12, "text-anchor": "middle" });
  const area = pointerArea(frame);
  area.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const wanted = x.invert((event.clientX - box.left) * (frame.width / box.width));
    const xs = lines[0].x;
    const nearest = xs.reduce((best, value, index) => (Math.abs(value - wanted) < Math.abs(xs[best] - wanted) ? index : best), 0);
    const at = x(xs[nearest]);
    rule.setAttribute("d", `M${at.toFixed(1)} ${frame.top}V${frame.bottom}`);
    words.textContent = [written(xs[nearest]), ...lines.map((each) => `${each.label} ${written(each.y[nearest])}`)].join(" · ");
    for (const each of [rule, words]) each.setAttribute("visibility", "visible");
  });
  area.addEventListener("pointerleave", () => { for (const each of [rule, words]) each.setAttribute("visibility", "hidden"); });
  return [rule, words, area];
}

function pointerArea(frame) {
  return svgElement("rect", {
    class: "pick", x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top,
  });
}

// A map of cells over two settings, curves of the theory, and the point of the current settings.
// spec: {x: {label, log, domain}, y: {...}, cells: {x, y, values, tone(value), strength(value)}, legend: [{label, tone}],
//        curves: [{label, tone?, x, y}], point: [x, y], pick(x, y), description}
export function planeChart(stage, options) {
  return chart(stage, { ...options, render: drawPlane });
}

function drawPlane(spec, width) {
  const curves = spec.curves.map((each, index) => ({ ...each, dash: index }));
  const legend = legendRows([...(spec.legend ?? []), ...curves.filter((each) => each.label)], width);
  const frame = newFrame(width, spec.height ?? HEIGHT, legend.rows);
  const x = (spec.x.log ? logarithmic : linear)(spec.x.domain, [frame.left, frame.right]);
  const y = (spec.y.log ? logarithmic : linear)(spec.y.domain, [frame.bottom, frame.top]);
  const [clip, inside] = clipped(frame);
  if (spec.cells) inside.append(cellMap(spec.cells, x, y));
  for (const each of curves) {
    const kind = each.tone ? `line ${each.tone}` : "curve";
    inside.append(svgElement("path", { class: kind, d: linePath(each.x, each.y, x, y), "stroke-dasharray": DASHES[each.dash] }));
  }
  const parts = [clip, inside, ...axes(spec, frame, x, y, false), ...legend.draw()];
  if (spec.point) parts.push(svgElement("circle", { class: "point", cx: x(spec.point[0]), cy: y(spec.point[1]), r: 6.5 }));
  const picture = svgElement("svg", { viewBox: `0 0 ${width} ${frame.height}` }, parts);
  if (spec.pick) picture.append(pickArea(picture, frame, x, y, spec.pick));
  return picture;
}

// Cells are thousands of elements that stay the same while the point moves, so they are made once for each size.
const mapsOfValues = new WeakMap();

function cellMap(cells, x, y) {
  const size = [cells.x[0], cells.x[cells.x.length - 1]].map(x).concat([cells.y[0], cells.y[cells.y.length - 1]].map(y)).join();
  const before = mapsOfValues.get(cells.values);
  if (before?.size === size) return before.group;
  const group = newCellMap(cells, x, y);
  mapsOfValues.set(cells.values, { size, group });
  return group;
}

// The outer edges are at the first and the last value, unless `cells.ends(scale)` gives others.
function newCellMap(cells, x, y) {
  const group = svgElement("g", { "shape-rendering": "crispEdges" });
  const edgesOf = (values, scale) => {
    const at = values.map(scale);
    const middles = at.slice(1).map((value, index) => (value + at[index]) / 2);
    const [first, last] = cells.ends ? cells.ends(scale) : [at[0], at[at.length - 1]];
    return [first, ...middles, last].map(Math.round); // whole pixels leave no gaps between cells
  };
  const [across, up] = [edgesOf(cells.x, x), edgesOf(cells.y, y)];
  cells.values.forEach((row, j) => row.forEach((value, i) => {
    group.append(svgElement("rect", {
      class: `cell ${cells.tone(value)}`, "fill-opacity": cells.strength(value).toFixed(3),
      x: across[i], width: Math.max(0, across[i + 1] - across[i]),
      y: up[j + 1], height: Math.max(0, up[j] - up[j + 1]),
    }));
  }));
  return group;
}

// Pointers choose a point; the sliders do the same for the keyboard.
function pickArea(picture, frame, x, y, pick) {
  const area = pointerArea(frame);
  const send = (event) => {
    const box = picture.getBoundingClientRect();
    const factor = frame.width / box.width;
    pick(x.invert((event.clientX - box.left) * factor), y.invert((event.clientY - box.top) * factor));
  };
  area.addEventListener("pointerdown", (event) => send(event));
  area.addEventListener("pointermove", (event) => { if (event.buttons === 1) send(event); });
  return area;
}

export function newFrame(width, height, legendRowCount) {
  const top = MARGIN.top + LEGEND_ROW * legendRowCount;
  const total = height + LEGEND_ROW * legendRowCount;
  return { width, height: total, left: MARGIN.left, right: width - MARGIN.right, top, bottom: total - MARGIN.bottom };
}

// A group of which only what is inside the frame is seen, and the definition that it needs.
function clipped(frame) {
  const id = `clip-${Math.random().toString(36).slice(2)}`;
  const box = { x: frame.left, y: frame.top - 1, width: frame.right - frame.left, height: frame.bottom - frame.top + 2 };
  const definition = svgElement("defs", {}, [svgElement("clipPath", { id }, [svgElement("rect", box)])]);
  return [definition, svgElement("g", { "clip-path": `url(#${id})` })];
}

export function axes(spec, frame, x, y, grid = true) {
  const parts = [];
  const text = (attributes, words) => { const made = svgElement("text", attributes); made.textContent = words; return made; };
  for (const tick of y.ticks(5)) {
    const at = y(tick).toFixed(1);
    if (grid) parts.push(svgElement("path", { class: "grid", d: `M${frame.left} ${at}H${frame.right}` }));
    parts.push(text({ x: frame.left - 7, y: Number(at) + 4, "text-anchor": "end" }, written(tick)));
  }
  for (const tick of x.ticks(Math.max(3, Math.round((frame.right - frame.left) / 90)))) {
    const at = x(tick).toFixed(1);
    parts.push(svgElement("path", { class: "axis", d: `M${at} ${frame.bottom}v4` }));
    parts.push(text({ x: at, y: frame.bottom + 18, "text-anchor": "middle" }, written(tick)));
  }
  parts.push(svgElement("path", { class: "axis", d: `M${frame.left} ${frame.top}V${frame.bottom}H${frame.right}` }));
  const middle = (frame.top + frame.bottom) / 2;
  parts.push(text({ class: "label", x: (frame.left + frame.right) / 2, y: frame.height - 5, "text-anchor": "middle" }, spec.x.label));
  parts.push(text({ class: "label", transform: `translate(13 ${middle}) rotate(-90)`, "text-anchor": "middle" }, spec.y.label));
  return parts;
}

// Entries above the frame, in as many rows as the width needs: a legend never covers data.
export function legendRows(entries, width) {
  const laid = [];
  let [left, row] = [MARGIN.left, 0];
  for (const entry of entries) {
    const size = 30 + CHARACTER * entry.label.length;
    if (left + size > width - MARGIN.right && left > MARGIN.left) [left, row] = [MARGIN.left, row + 1];
    laid.push({ ...entry, left, top: MARGIN.top + 6 + LEGEND_ROW * row });
    left += size + 14;
  }
  const draw = () => laid.flatMap((entry) => {
    const words = svgElement("text", { class: "label", x: entry.left + 28, y: entry.top + 4 });
    words.textContent = entry.label;
    return [sample(entry), words];
  });
  return { rows: entries.length ? row + 1 : 0, draw };
}

function sample(entry) {
  if (entry.cell) {
    return svgElement("rect", { class: `cell ${entry.tone}`, "fill-opacity": 0.6, x: entry.left, y: entry.top - 6, width: 20, height: 12 });
  }
  const kind = entry.tone ? `${entry.thin ? "thin" : "line"} ${entry.tone}` : "curve";
  const attributes = { class: kind, d: `M${entry.left} ${entry.top}h20` };
  if (entry.dash) attributes["stroke-dasharray"] = DASHES[entry.dash];
  return svgElement("path", attributes);
}

function linePath(xs, ys, x, y) {
  let path = "", pen = "M";
  for (let index = 0; index < xs.length; index += 1) {
    if (xs[index] === null || ys[index] === null || !Number.isFinite(ys[index])) { pen = "M"; continue; }
    path += `${pen}${x(xs[index]).toFixed(1)} ${y(ys[index]).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

function bandPath(each, x, y) {
  const finite = [...each.x.keys()].filter((index) => each.low[index] !== null && each.high[index] !== null);
  if (finite.length === 0) return "";
  const out = finite.map((index) => `${x(each.x[index]).toFixed(1)} ${y(each.high[index]).toFixed(1)}`);
  const back = finite.map((index) => `${x(each.x[index]).toFixed(1)} ${y(each.low[index]).toFixed(1)}`).reverse();
  return `M${out.join("L")}L${back.join("L")}Z`;
}
