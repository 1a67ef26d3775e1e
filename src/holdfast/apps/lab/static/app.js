// The page: which view is open, its settings, and what happens when one of them changes.

import { asCsv, saveText } from "./downloads.js";
import { buildForm } from "./form.js";
import { newButton } from "./panel.js";
import { readAddress, writeAddress } from "./permalink.js";
import { Runner, leave, refusal } from "./runner.js";

const at = (id) => document.getElementById(id);
// Milliseconds before a bar of progress appears: what is faster needs none.
const UNNOTICED = 350;

const page = { views: [], view: null, settings: {}, uploads: {}, data: {}, code: {}, form: null, drawing: null, waiting: null };
const runner = new Runner({ event: receive, end: settle });

async function open() {
  const response = await fetch("/api/views");
  if (!response.ok) { complain(await refusal(response)); return; }
  page.views = (await response.json()).views;
  for (const view of page.views) {
    const link = document.createElement("a");
    link.href = `#${view.name}`;
    link.textContent = view.title;
    at("views").append(link);
  }
  addActions();
  addEventListener("hashchange", followAddress);
  await followAddress();
}

async function followAddress() {
  const { view, settings } = readAddress(location.hash, page.views);
  if (view !== page.view) await show(view);
  if (view !== page.view) return;
  page.settings = { ...settings, ...page.uploads[view.name] }; // an address never names an upload
  page.form.set(page.settings);
  changedSettings(performance.now());
}

async function show(view) {
  runner.stop();
  page.view = view;
  page.data = {};
  document.title = `${view.title} · Holdfast laboratory`;
  at("title").textContent = view.title;
  for (const link of at("views").children) {
    if (link.hash === `#${view.name}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  at("stage").replaceChildren();
  at("summary").textContent = "";
  const { create } = await import(`./views/${view.name}.js`);
  if (view !== page.view) return; // another one was chosen meanwhile
  page.form = buildForm(at("settings"), view.inputs, (name, value) => choose({ [name]: value }), complain);
  at("settings").classList.toggle("sliders", view.inputs.some((input) => input.kind === "number"));
  page.drawing = create(at("stage"), { choose, offer: page.form.offer, reveal: page.form.reveal });
}

// Settings that a control, or a pointer on a chart, has chosen.
function choose(wanted) {
  const since = performance.now();
  const followed = page.drawing.follow?.(wanted) ?? null; // other settings that no longer fit, and neither does the result
  const chosen = { ...followed, ...wanted };
  if (followed) { page.data = {}; page.code = {}; at("summary").textContent = ""; }
  const display = Object.keys(chosen).every((name) => page.view.inputs.find((input) => input.name === name)?.display);
  for (const input of page.view.inputs) if (input.kind === "upload" && input.name in chosen) page.uploads[page.view.name] = { [input.name]: chosen[input.name] };
  page.settings = { ...page.settings, ...chosen };
  page.form.set(page.settings);
  history.replaceState(null, "", writeAddress(page.view, page.settings));
  if (display) draw(); else changedSettings(since);
}

function changedSettings(since) {
  draw(); // what does not need the server, such as the point on a map
  runner.start({ view: page.view.name, settings: page.settings, since });
  if (page.waiting === null) waitForNews();
}

// The bar appears when nothing has been drawn for a while: not during a movement that the charts follow.
function waitForNews() {
  clearTimeout(page.waiting);
  page.waiting = setTimeout(() => { at("work").hidden = false; at("stage").classList.add("stale"); }, UNNOTICED);
}

function receive(event, request) {
  if (request.view !== page.view.name) return;
  switch (event.event) {
    case "accepted": page.code = {}; complain(""); at("notice").textContent = ""; break;
    case "progress": at("phase").textContent = "computing"; at("progress").max = event.total; at("progress").value = event.done; break;
    case "waiting": at("progress").removeAttribute("value"); at("phase").textContent = "waiting for a free worker"; break;
    case "running": at("progress").removeAttribute("value"); at("phase").textContent = "computing; new sizes are compiled first"; break;
    case "part": update(event.data, request); break;
    case "done": update(event.data, request); at("summary").textContent = page.data.summary ?? ""; break;
    case "failed": complain(event.sentence); break;
    case "stopped": at("notice").textContent = "Stopped."; break;
  }
}

function update(data, request) {
  page.data = { ...page.data, ...data };
  if (data.code) page.code = data.code;
  draw();
  waitForNews();
  const elapsed = performance.now() - request.since;
  document.dispatchEvent(new CustomEvent("drawn", { detail: { parts: Object.keys(data), settings: request.settings, elapsed } }));
  at("timing").textContent = `Drawn ${elapsed < 1000 ? `${elapsed.toFixed(0)} ms` : `${(elapsed / 1000).toFixed(1)} s`} after the change.`;
}

function settle() {
  clearTimeout(page.waiting);
  page.waiting = null;
  at("work").hidden = true;
  at("progress").removeAttribute("value");
  at("phase").textContent = "";
  at("stage").classList.remove("stale");
}

function draw() { page.drawing.draw(page.data, page.settings); }

function complain(sentence) {
  at("alert").hidden = !sentence;
  at("alert").textContent = sentence;
}

function addActions() {
  const actions = [
    ["Copy link", () => copy(location.origin + location.pathname + writeAddress(page.view, page.settings), "link")],
    ["Copy as Python", () => copy(page.code.python, "Python")],
    ["Copy as command", () => copy(page.code.command, "command")],
    ["Numbers (CSV)", () => saveText(asCsv(page.drawing.numbers(page.data)), `${page.view.name}.csv`, "text/csv")],
    ["Numbers (JSON)", () => saveText(JSON.stringify({ settings: page.settings, ...page.data }), `${page.view.name}.json`, "application/json")],
  ];
  at("actions").append(...actions.map(([label, act]) => newButton(label, act)));
}

async function copy(text, what) {
  if (!text) { at("notice").textContent = `There is no ${what} for this view yet.`; return; }
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not allowed, or no secure context: the old way
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  at("notice").textContent = `Copied the ${what}.`;
}

const THEMES = [["", "as the system"], ["light", "light"], ["dark", "dark"]];
at("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const now = THEMES.findIndex(([name]) => name === (root.dataset.theme ?? ""));
  const [name, words] = THEMES[(now + 1) % THEMES.length];
  if (name) root.dataset.theme = name; else delete root.dataset.theme;
  at("theme").setAttribute("aria-label", `Colours: ${words}`);
  at("notice").textContent = `Colours ${words}.`;
  try { localStorage.setItem("holdfast-theme", name); } catch { /* storage may be switched off */ }
});
at("settings").addEventListener("submit", (event) => event.preventDefault());
// What follows the # is a view: this link must not open another one.
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); at("outcome").focus(); });
at("stop").addEventListener("click", () => runner.stop());

addEventListener("pagehide", () => { if (Object.keys(page.uploads).length) leave(); });

open();
