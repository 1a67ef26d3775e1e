// Pictures and numbers as files, made in the browser from what it shows.

import { newButton } from "./panel.js";

const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-family", "font-size", "paint-order"];
const PIXELS = 2; // of a PNG for each pixel of the page

export function saveButtons(name, picture, title) {
  const holder = document.createElement("span");
  holder.className = "save";
  for (const [kind, save] of [["SVG", saveSvg], ["PNG", savePng]]) {
    const button = newButton(kind, () => { if (picture()) save(picture(), name); });
    button.setAttribute("aria-label", `Save the picture “${title}” as ${kind}`);
    holder.append(button);
  }
  return holder;
}

export function saveText(text, file, type) {
  saveBlob(new Blob([text], { type }), file);
}

export function saveAddress(address, file) {
  const link = document.createElement("a");
  link.href = address;
  link.download = file;
  link.click();
}

function saveBlob(blob, file) {
  const address = URL.createObjectURL(blob);
  saveAddress(address, file);
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// A spreadsheet would run a text that begins like this.
const FORMULA = /^[=+\-@\t\r]/;

// Columns of equal or different lengths as CSV; numbers need no quotes, texts get them, and none of them is a formula.
export function asCsv(columns) {
  const names = Object.keys(columns);
  const rows = Math.max(0, ...names.map((name) => columns[name].length));
  const cell = (value) => (value === null || value === undefined ? "" : typeof value === "string" ? `"${FORMULA.test(value) ? "'" : ""}${value.replaceAll('"', '""')}"` : String(value));
  const lines = [names.map(cell).join(",")];
  for (let row = 0; row < rows; row += 1) lines.push(names.map((name) => cell(columns[name][row])).join(","));
  return `${lines.join("\n")}\n`;
}

function saveSvg(svg, name) {
  saveText(standalone(svg), `${name}.svg`, "image/svg+xml");
}

async function savePng(svg, name) {
  const box = svg.viewBox.baseVal;
  const image = new Image();
  const address = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
  image.src = address;
  await image.decode();
  URL.revokeObjectURL(address);
  const canvas = document.createElement("canvas");
  canvas.width = box.width * PIXELS;
  canvas.height = box.height * PIXELS;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => saveBlob(blob, `${name}.png`), "image/png");
}

// The style sheet does not travel with a picture, so what it says is written into the elements.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, index) => {
    const style = getComputedStyle(originals[index]);
    for (const property of COPIED) element.setAttribute(property, style.getPropertyValue(property));
    element.removeAttribute("class");
  });
  const { width, height } = svg.viewBox.baseVal;
  const ground = document.createElementNS(svg.namespaceURI, "rect");
  ground.setAttribute("width", width);
  ground.setAttribute("height", height);
  ground.setAttribute("fill", getComputedStyle(svg.closest("figure")).backgroundColor);
  copy.prepend(ground);
  copy.setAttribute("xmlns", svg.namespaceURI);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return new XMLSerializer().serializeToString(copy);
}
