// The form of a view, built from the description of its inputs.

import { upload } from "./runner.js";
import { written } from "./scales.js";

// Returns {set(settings), offer(name, values)}; `changed(name, value)` is called while a slider moves, `complain(sentence)`
// if a file cannot be uploaded. `offer` suggests values for a text, such as the names of columns.
export function buildForm(form, inputs, changed, complain) {
  form.replaceChildren();
  const setters = {};
  const groups = new Map();
  for (const input of inputs) {
    if (!groups.has(input.group)) {
      const group = document.createElement("fieldset");
      const legend = document.createElement("legend");
      legend.textContent = input.group || "Settings";
      group.append(legend);
      groups.set(input.group, group);
      form.append(group);
    }
    const field = document.createElement("div");
    field.className = "field";
    const label = document.createElement("label");
    label.htmlFor = `input-${input.name}`;
    label.textContent = input.label;
    const { control, output, hint, set } = CONTROLS[input.kind](input, (value) => changed(input.name, value), complain);
    control.id = label.htmlFor;
    control.name = input.name;
    field.append(label, ...(output ? [output] : []), control, ...(hint ? [hint] : []));
    groups.get(input.group).append(field);
    setters[input.name] = set;
  }
  const offer = (name, values) => {
    const control = form.elements[name];
    const list = document.getElementById(`offers-${name}`) ?? document.createElement("datalist");
    list.id = `offers-${name}`;
    list.replaceChildren(...values.map((value) => new Option(value, value)));
    control.setAttribute("list", list.id);
    control.after(list);
  };
  return { set: (settings) => { for (const [name, set] of Object.entries(setters)) set(settings[name]); }, offer };
}

const CONTROLS = { number: slider, choice: menu, text: textField, upload: filePicker };

function slider(input, changed) {
  const control = document.createElement("input");
  const output = document.createElement("output");
  output.htmlFor = `input-${input.name}`;
  control.type = "range";
  const [to, from] = input.logarithmic ? [Math.log10, (position) => 10 ** position] : [(value) => value, (position) => position];
  control.min = to(input.low);
  control.max = to(input.high);
  control.step = input.step;
  const show = (value) => {
    const words = `${written(value)}${input.unit ? ` ${input.unit}` : ""}`;
    output.value = words;
    control.setAttribute("aria-valuetext", words);
  };
  control.addEventListener("input", () => {
    const rounded = Number(from(Number(control.value)).toPrecision(input.logarithmic ? 3 : 10));
    const within = Math.min(input.high, Math.max(input.low, rounded));
    const value = input.whole ? Math.round(within) : within;
    show(value);
    changed(value);
  });
  return { control, output, set: (value) => { control.value = to(value); show(value); } };
}

function menu(input, changed) {
  const control = document.createElement("select");
  for (const option of input.options) {
    const each = document.createElement("option");
    each.value = String(option.value);
    each.textContent = String(option.value);
    control.append(each);
  }
  const hint = document.createElement("small");
  hint.id = `hint-${input.name}`;
  control.setAttribute("aria-describedby", hint.id);
  const explain = () => { hint.textContent = input.options[control.selectedIndex]?.words ?? ""; };
  control.addEventListener("change", () => { explain(); changed(input.options[control.selectedIndex].value); });
  return { control, hint, set: (value) => { control.value = String(value); explain(); } };
}

function textField(input, changed) {
  const control = document.createElement("input");
  control.type = "text";
  control.maxLength = input.longest;
  control.addEventListener("change", () => changed(control.value));
  return { control, set: (value) => { control.value = value; } };
}

function filePicker(input, changed, complain) {
  const control = document.createElement("input");
  control.type = "file";
  control.accept = input.endings.join(",");
  control.addEventListener("change", async () => {
    if (!control.files.length) return;
    try { changed(await upload(control.files[0])); } catch (error) { complain(error.message); }
  });
  return { control, set: (value) => { if (!value) control.value = ""; } };
}
