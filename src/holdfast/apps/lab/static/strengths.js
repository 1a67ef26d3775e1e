// Strengths of environments as points that a pointer drags and keys move, with a number beside each.

import { axes, newFrame, svgElement } from "./charts.js";
import { newButton, newPanel } from "./panel.js";
import { linear, written } from "./scales.js";

const HEIGHT = 260;
const STEP = 0.1; // of an arrow key, and of what a pointer chooses
const LEAP = 1; // of the page keys

// bounds: {fewest, most, largest}; `changed(values)` is called with all strengths while one of them moves.
export function strengthsChart(stage, { title, note, bounds, changed }) {
  const { panel: figure } = newPanel(stage, { title, note, figure: true });
  const holder = document.createElement("div");
  const numbers = document.createElement("div");
  numbers.className = "numbers";
  const buttons = document.createElement("p");
  buttons.className = "buttons";
  figure.append(holder, numbers, buttons);

  let values = [];
  let parts = null; // what is drawn, for one number of environments and one width

  const add = newButton("Add an environment", () => changed([...values, rounded(mean(values))]));
  const remove = newButton("Remove the last", () => changed(values.slice(0, -1)));
  buttons.append(add, remove);

  const rounded = (value) => {
    const within = Math.min(bounds.largest, Math.max(-bounds.largest, value));
    return Number((Math.round(within / STEP) * STEP).toFixed(6)) || 0; // no -0
  };
  const move = (index, value) => {
    const chosen = rounded(value);
    if (chosen !== values[index]) changed(values.map((each, at) => (at === index ? chosen : each)));
  };

  function build() {
    const width = Math.max(240, holder.clientWidth);
    const focused = parts?.handles.indexOf(document.activeElement) ?? -1;
    const frame = newFrame(width, HEIGHT, 0);
    const x = linear([0.5, values.length + 0.5], [frame.left, frame.right]);
    x.ticks = () => values.map((_, index) => index + 1);
    const y = linear([-bounds.largest, bounds.largest], [frame.bottom, frame.top]);
    const labels = { x: { label: "environment" }, y: { label: "strength ξ" } };
    const level = (kind) => svgElement("path", { class: kind, d: `M${frame.left} ${y(0)}H${frame.right}` });
    const average = level("curve");
    average.setAttribute("stroke-dasharray", "7 4");
    const words = svgElement("text", { class: "label", x: frame.right - 4, "text-anchor": "end" });
    const picture = svgElement("svg", { viewBox: `0 0 ${width} ${frame.height}`, role: "group", "aria-label": title }, [
      ...axes(labels, frame, x, y), level("axis"), average, words,
    ]);
    const handles = values.map((_, index) => handle(index, picture, frame, y));
    picture.append(...handles);
    holder.replaceChildren(picture);
    numbers.replaceChildren(...values.map((_, index) => numberField(index)));
    parts = { width, count: values.length, x, y, handles, average, words, fields: [...numbers.querySelectorAll("input")] };
    if (focused >= 0) handles[Math.min(focused, handles.length - 1)].focus();
  }

  function handle(index, picture, frame, y) {
    const made = svgElement("g", {
      class: "handle", role: "slider", tabindex: 0, "aria-label": `Strength of environment ${index + 1}`, "aria-orientation": "vertical",
      "aria-valuemin": -bounds.largest, "aria-valuemax": bounds.largest,
    }, [
      svgElement("path", { class: "stem" }),
      svgElement("circle", { class: "reach", r: 18 }), // a finger needs more than what is seen
      svgElement("circle", { class: "mark", r: 7.5 }),
    ]);
    // A finger on the point moves it, and not the page; elsewhere on the chart it scrolls.
    made.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    // By how far the pointer has moved, and not where it is: the page may have moved as well.
    let grip = null;
    made.addEventListener("pointerdown", (event) => {
      made.setPointerCapture(event.pointerId);
      const pixels = picture.getBoundingClientRect().height / frame.height;
      grip = { y: event.clientY, value: values[index], each: (y.invert(0) - y.invert(1)) / pixels };
    });
    made.addEventListener("pointermove", (event) => {
      if (made.hasPointerCapture(event.pointerId)) move(index, grip.value + (grip.y - event.clientY) * grip.each);
    });
    made.addEventListener("keydown", (event) => {
      const steps = { ArrowUp: STEP, ArrowRight: STEP, ArrowDown: -STEP, ArrowLeft: -STEP, PageUp: LEAP, PageDown: -LEAP };
      const ends = { Home: -bounds.largest, End: bounds.largest };
      if (event.key in steps) move(index, values[index] + steps[event.key]);
      else if (event.key in ends) move(index, ends[event.key]);
      else return;
      event.preventDefault();
    });
    return made;
  }

  function numberField(index) {
    const label = document.createElement("label");
    const field = document.createElement("input");
    field.type = "number";
    field.min = -bounds.largest;
    field.max = bounds.largest;
    field.step = STEP;
    field.addEventListener("input", () => { if (field.value !== "" && field.checkValidity()) move(index, field.valueAsNumber); });
    field.addEventListener("change", () => place());
    label.append(`ξ of ${index + 1}`, field);
    return label;
  }

  function place() {
    const { x, y, handles, average, words, fields } = parts;
    values.forEach((value, index) => {
      const each = handles[index];
      each.setAttribute("aria-valuenow", value);
      const [stem, ...circles] = each.children;
      const [across, up] = [x(index + 1).toFixed(1), y(value).toFixed(1)];
      stem.setAttribute("d", `M${across} ${y(0).toFixed(1)}V${up}`);
      for (const circle of circles) { circle.setAttribute("cx", across); circle.setAttribute("cy", up); }
      if (document.activeElement !== fields[index]) fields[index].value = value;
    });
    const level = y(mean(values));
    average.setAttribute("transform", `translate(0 ${(level - y(0)).toFixed(1)})`);
    words.textContent = `mean ${written(Number(mean(values).toFixed(3)))}`;
    words.setAttribute("y", level - 5);
    add.disabled = values.length >= bounds.most;
    remove.disabled = values.length <= bounds.fewest;
  }

  function draw(given) {
    values = given;
    if (parts?.count !== values.length || parts.width !== Math.max(240, holder.clientWidth)) build();
    place();
  }
  new ResizeObserver(() => { if (values.length) draw(values); }).observe(holder);
  return { draw };
}

function mean(values) { return values.reduce((sum, value) => sum + value, 0) / values.length; }
