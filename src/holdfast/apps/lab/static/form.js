// The form of a view, built from the description of its inputs.

import { upload } from "./runner.js";
import { written } from "./scales.js";

// Returns {set(settings), offer(name, values, empty), reveal(group, visible)}; `changed(name, value)` is called while a slider
// moves, `complain(sentence)` if a file cannot be uploaded. `offer` names the columns of a table, with words for no choice, or
// suggests values for a text; `reveal` hides a group of inputs that mean nothing here.
export function buildForm(form, inputs, changed, complain) {
  form.replaceChildren();
  const setters = {};
  const offers = {};
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
    const { control, output, hint, set, offer } = CONTROLS[input.kind](input, (value) => changed(input.name, value), complain);
    control.id = label.htmlFor;
    if (control.tagName === "DIV") { // a group of boxes, each with its own label
      label.removeAttribute("for");
      label.id = `label-${input.name}`;
      control.setAttribute("aria-labelledby", label.id);
    } else control.name = input.name;
    field.append(label, ...(output ? [output] : []), control, ...(hint ? [hint] : []));
    groups.get(input.group).append(field);
    setters[input.name] = (settings) => {
      const [other, values] = input.only_for ?? [];
      field.hidden = other !== undefined && !values.includes(settings[other]); // it means nothing for what is chosen
      set(settings[input.name]);
    };
    offers[input.name] = offer;
  }
  const offer = (name, values, empty) => {
    if (offers[name]) { offers[name](values, empty); return; }
    const control = form.elements[name];
    const list = document.getElementById(`offers-${name}`) ?? document.createElement("datalist");
    list.id = `offers-${name}`;
    list.replaceChildren(...values.map((value) => new Option(value, value)));
    control.setAttribute("list", list.id);
    control.after(list);
  };
  const reveal = (group, visible) => { groups.get(group).hidden = !visible; };
  return { set: (settings) => { for (const set of Object.values(setters)) set(settings); }, offer, reveal };
}

const CONTROLS = { number: slider, choice: menu, text: textField, column: columnMenu, columns: columnBoxes, upload: filePicker };

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
    const words = written(value);
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

// Names come from untrusted files: they are set as text, never as markup.
function columnMenu(input, changed) {
  const control = document.createElement("select");
  let [offered, chosen, none] = [[], "", input.empty];
  const show = () => {
    const values = chosen && !offered.includes(chosen) ? [chosen, ...offered] : offered;
    control.replaceChildren(new Option(none, ""), ...values.map((value) => new Option(value, value)));
    control.value = chosen;
  };
  control.addEventListener("change", () => { chosen = control.value; changed(chosen); });
  show();
  return { control, set: (value) => { chosen = value; show(); }, offer: (values, empty = none) => { [offered, none] = [values, empty]; show(); } };
}

function columnBoxes(input, changed) {
  const control = document.createElement("div");
  control.setAttribute("role", "group");
  control.className = "boxes";
  let [offered, chosen] = [[], []];
  const show = () => {
    control.replaceChildren(...offered.map((value) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = chosen.includes(value);
      box.addEventListener("change", () => changed(offered.filter((each) => (each === value ? box.checked : chosen.includes(each)))));
      label.append(box, document.createTextNode(` ${value}`));
      return label;
    }));
  };
  // Boxes stay where they are while one of them is used, so that the keyboard does not lose its place.
  const refresh = () => { [...control.querySelectorAll("input")].forEach((box, index) => { box.checked = chosen.includes(offered[index]); }); };
  return {
    control,
    set: (value) => { chosen = value; refresh(); },
    offer: (values) => { if (values.join("\n") !== offered.join("\n")) { offered = values; show(); } },
  };
}

function filePicker(input, changed, complain) {
  const control = document.createElement("input");
  control.type = "file";
  control.accept = input.endings.join(",");
  control.addEventListener("change", async () => {
    const [file] = control.files;
    if (!file) return;
    if (file.size === 0) { complain(`the file must not be empty, got ${file.name}`); return; }
    if (file.size > input.largest) { complain(`the file must be at most ${input.largest >> 20} MiB, got a larger one: \`holdfast fit\` takes tables of any size`); return; }
    try { changed(await upload(file)); } catch (error) { complain(error.message); }
  });
  return { control, set: (value) => { if (!value) control.value = ""; } };
}
