// Strengths to drag, the exponent over the step size with its window, the tail of the share, and advice.

import { lineChart, planeChart } from "../charts.js";
import { newButton, newList, newPanel } from "../panel.js";
import { written } from "../scales.js";
import { strengthsChart } from "../strengths.js";

const BOUNDS = { fewest: 2, most: 8, largest: 20 }; // as in lab/views/window.py
const EXPONENTS = [-0.3, 0.3]; // where its sign is to be seen
const LEAST_PROBABILITY = 1e-4;

export function create(stage, { choose }) {
  // A search takes seconds and would hold back what follows a pointer, so moving a point ends it.
  const strengths = strengthsChart(stage, {
    title: "Environments", note: "drag a point, or move it with the arrow keys", bounds: BOUNDS,
    changed: (values) => choose({ strengths: values.join(", "), advice: "off" }),
  });
  const plane = planeChart(stage, {
    title: "Exponents and the window", note: "click to choose", name: "window-exponents",
  });
  const law = lineChart(stage, { title: "Tail of the spurious share", name: "window-tail" });
  const advice = advicePanel(stage, () => choose({ advice: "on" }));
  const pick = (x) => choose({ step_size: Number(x.toPrecision(3)) });

  function draw(data, settings) {
    const values = parsed(settings.strengths);
    if (values) strengths.draw(values);
    if (data.point) plane.draw(planeSpec(data, settings, pick));
    if (data.tail) {
      law.setNote(tailNote(data.tail));
      law.draw(tailSpec(data.tail, settings));
    }
    advice.draw(data.advice ?? [], settings.advice === "on");
  }
  return { draw, numbers };
}

// What is typed may be anything; the server says what is wrong with it.
function parsed(text) {
  const values = text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  const fits = values.length >= BOUNDS.fewest && values.length <= BOUNDS.most && values.every((value) => Math.abs(value) <= BOUNDS.largest);
  return fits ? values : null;
}

function planeSpec({ exponents, window, point }, settings, pick) {
  const x = exponents.step_size;
  const domain = [x[0], x[x.length - 1]];
  const inside = window.empty ? undefined : {
    x: [Math.max(window.low, domain[0]), Math.min(window.high, domain[1])], y: EXPONENTS, values: [[1, 1], [1, 1]],
    tone: () => "invariant", strength: () => 0.16,
  };
  const curves = [
    { label: "spurious, E log|1 + η ξ|", tone: "spurious", x, y: exponents.spurious },
    { label: "invariant, log(1 + η)", tone: "invariant", x, y: exponents.invariant },
    { label: "", x: domain, y: [0, 0] },
  ];
  if (window.bounded !== null && window.bounded < domain[1]) {
    curves.push({ label: "may diverge from here on", x: [window.bounded, window.bounded], y: EXPONENTS });
  }
  const where = window.empty ? "There is no window." : `The window is from ${written(window.low)} to ${written(window.high)}.`;
  return {
    height: 300, x: { label: "step size η", log: true, domain }, y: { label: "exponent λ, per step", domain: EXPONENTS },
    cells: inside, legend: window.empty ? [] : [{ label: "window", tone: "invariant", cell: true }], curves, pick,
    point: [settings.step_size, clamped(point.exponent)],
    description: `${where} At step size ${written(settings.step_size)} the exponent of the spurious signal is ${written(point.exponent)}.`,
  };
}

function clamped(value) { return Math.min(EXPONENTS[1], Math.max(EXPONENTS[0], value ?? EXPONENTS[0])); }

function tailNote(tail) {
  const lost = tail.diverged ? `${tail.diverged} of ${written(tail.runs)} runs diverged; ` : "";
  if (!tail.law) return `${lost}no law in the long run`;
  if (tail.index < 0) return `${lost}theory: no sampling error`;
  return tail.power ? `${lost}tail index κ = ${written(tail.index)}` : `${lost}no power tail`;
}

function tailSpec(tail, settings) {
  const series = [
    { label: `after ${written(settings.steps)} steps, simulated`, tone: "spurious", x: tail.simulated.share, y: tail.simulated.probability },
  ];
  if (tail.law) series.push({ label: "in the long run, theory", tone: "other", x: tail.law.share, y: tail.law.probability, dash: 1 });
  if (tail.power) series.push({ label: "power law of index κ/2", tone: "other", x: tail.power.share, y: tail.power.probability, thin: true });
  const shares = series.flatMap((each) => each.x).filter((value) => value > 0);
  const domain = [Math.max(1e-8, Math.min(1, ...shares)), Math.max(1, ...shares) * 1.2];
  const above = tail.simulated.share.findIndex((value) => value > settings.tolerance);
  const chance = above < 0 ? "none" : `about ${written(100 * tail.simulated.probability[above])} %`;
  return {
    x: { label: "share of the spurious signal", log: true, domain }, y: { label: "probability of a larger one", log: true, domain: [LEAST_PROBABILITY, 1.2] },
    series, description: `After ${settings.steps} steps ${chance} of the simulated runs have a share above ${written(settings.tolerance)}.`,
  };
}

function advicePanel(stage, search) {
  const { panel } = newPanel(stage, { title: "Advice" });
  panel.classList.add("advice");
  const { list, set } = newList();
  const button = newButton("Search for settings", search);
  panel.append(list, button);
  return { draw: (sentences, searched) => { set(sentences); button.hidden = searched; } };
}

function numbers(data) {
  const { exponents, tail } = data;
  const columns = { step_size: exponents?.step_size ?? [], spurious_exponent: exponents?.spurious ?? [], invariant_exponent: exponents?.invariant ?? [] };
  for (const name of ["simulated", "law"]) {
    columns[`${name}_share`] = tail?.[name]?.share ?? [];
    columns[`${name}_probability`] = tail?.[name]?.probability ?? [];
  }
  return columns;
}
