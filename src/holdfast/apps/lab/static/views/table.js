// Your table: which relations hold, which are dangerous, their effects, and errors in held-out environments.

import { saveText } from "../downloads.js";
import { forestChart } from "../forest.js";
import { newButton } from "../panel.js";
import { written } from "../scales.js";
import { dataTable, sentences } from "../tables.js";

const MOST_ROWS = 50; // of a forest plot; more cannot be read
const TONES = { "this fit": "invariant", strict: "other", "least squares": "spurious" };
const VERDICTS = { holds: "good", varies: "doubtful", dangerous: "bad", "cannot be told": "aside" };
// Choices that belong to one table and say nothing about another.
const OF_THE_TABLE = { target: "", environment: "", exclude: [], before: [], after: [], feature: "" };

export function create(stage, { choose, offer }) {
  const about = document.createElement("p");
  about.className = "wide note";
  let [model, code] = ["", ""];
  const save = document.createElement("p");
  save.className = "wide buttons";
  const saveModel = newButton("Save the model (JSON)", () => saveText(model, "model.json", "application/json"));
  saveModel.title = "The file that `holdfast predict` reads";
  save.append(saveModel, newButton("Save the code (Python)", () => saveText(code, "fit.py", "text/x-python")));
  stage.append(about);
  const advice = sentences(stage, { title: "In short" });
  const features = dataTable(stage, {
    title: "What holds, and what is dangerous", note: "the most dangerous first; choose a feature to see its effects below",
  });
  const effects = forestChart(stage, { title: "Effect by environment", name: "effects", note: "estimate and 95 % interval" });
  const errors = forestChart(stage, { title: "Error in held-out environments", name: "errors", note: "each was left out of the fit once" });
  const notes = sentences(stage, { title: "Notes", folded: true });
  stage.append(save);

  function draw(data, settings) {
    for (const part of [effects.figure, features.section, save]) part.hidden = !data.fit;
    if (data.table) describe(data.table, about, offer); else about.textContent = "";
    advice.draw(data.fit?.advice ?? []);
    notes.draw(data.fit?.notes ?? []);
    if (data.fit) {
      [model, code] = [data.fit.model, data.code.python];
      const names = data.fit.features.map((feature) => feature.name);
      offer("feature", names);
      const index = Math.max(0, names.indexOf(settings.feature)); // the most dangerous is the first
      if (names.length) effects.draw(effectSpec(data.fit, index));
      effects.setTitle(names.length ? `Effect of ${names[index]} by environment` : "Effect by environment");
      features.draw(FEATURE_COLUMNS, data.fit.features, (feature) => choose({ feature: feature.name }));
    }
    errors.figure.hidden = !data.held_out?.errors;
    if (data.held_out?.errors) errors.draw(errorSpec(data.held_out, data.fit.task));
  }
  const follow = (chosen) => ("upload" in chosen || "example" in chosen ? OF_THE_TABLE : null);
  return { draw, numbers, follow };
}

function describe(table, about, offer) {
  const { columns } = table;
  offer("target", columns, `guess: ${table.guesses.target || "none"}`);
  offer("environment", table.environments, `guess: ${table.guesses.environment || "none"}`);
  const features = columns.filter((name) => name !== table.target && name !== table.environment);
  for (const choice of ["exclude", "before", "after"]) offer(choice, features);
  const environment = table.environment ? `environments from ${table.environment}` : "no environments found: please choose a column";
  about.textContent = `${table.name}: about ${written(table.rows)} rows and ${columns.length} columns; predicting ${table.target}, ${environment}.`;
}

const FEATURE_COLUMNS = [
  { name: "name", label: "Feature" },
  { name: "verdict", label: "Verdict", tone: (row) => VERDICTS[row.verdict] ?? "open" },
  { name: "danger", label: "Danger", number: true, words: percent },
  { name: "reliance", label: "Reliance", number: true, words: percent },
  { name: "coefficient", label: "Coefficient", number: true, words: written },
  { name: "effect", label: "Effect", number: true, words: written },
  { name: "low", label: "95 % interval", number: true, words: (low, row) => fromTo(low, row.high) },
  { name: "between", label: "SD between", number: true, words: written },
  { name: "i_squared", label: "I²", number: true, words: percent },
  { name: "reverse", label: "Reverse slope", number: true, words: written },
  { name: "reverse_between", label: "its SD between", number: true, words: written },
];

function percent(share) { return Number.isFinite(share) ? `${Math.round(100 * share)} %` : "–"; }

function fromTo(low, high) { return Number.isFinite(low) ? `${written(low)} to ${written(high)}` : "–"; }

function effectSpec(fit, index) {
  const feature = fit.features[index];
  const row = (label, tone, value, low, high) => ({ label, estimates: [{ label: "", tone, value, low, high }] }); // rows have names: no legend
  const drawn = fit.environments.slice(0, MOST_ROWS);
  const rows = drawn.map((label, number) => row(
    label, "other", fit.effects.value[number][index], fit.effects.low[number][index], fit.effects.high[number][index],
  ));
  if (fit.environments.length > 1) {
    rows.push(row("mean", "other", feature.effect, feature.low, feature.high));
  }
  rows.push(row("pooled fit", "spurious", feature.pooled_coefficient), row("this fit", "invariant", feature.coefficient));
  const more = fit.environments.length - drawn.length;
  return {
    x: { label: `effect of ${cut(feature.name)}, units of ${cut(feature.unit)}` }, rows,
    description: `${feature.name}: ${feature.verdict}. ${feature.reason}${more > 0 ? ` ${more} more environments are in the numbers.` : ""}`,
  };
}

function errorSpec(heldOut, task) {
  const what = task === "classification" ? "share of wrong classes" : "mean squared error";
  const rows = heldOut.environments.map((label, index) => ({
    label,
    estimates: Object.entries(heldOut.errors).map(([name, values]) => ({ label: name, tone: TONES[name], value: values[index] })),
  }));
  const means = Object.entries(heldOut.errors).map(([name, values]) => `${name} ${written(values.reduce((sum, value) => sum + value, 0) / values.length)}`);
  return { x: { label: what }, rows, description: `${what}, mean over environments: ${means.join(", ")}.` };
}

function cut(name) { return name.length > 40 ? `${name.slice(0, 39)}…` : name; }

// One row for each feature and environment, with what is said about the feature.
function numbers(data) {
  const rows = (data.fit?.features ?? []).flatMap((feature, index) => data.fit.environments.map((environment, number) => ({
    feature: feature.name, environment,
    effect: data.fit.effects.value[number][index], effect_low: data.fit.effects.low[number][index], effect_high: data.fit.effects.high[number][index],
    coefficient: feature.coefficient, pooled: feature.pooled_coefficient,
    mean_effect: feature.effect, mean_low: feature.low, mean_high: feature.high, between: feature.between, i_squared: feature.i_squared,
    p_value: feature.significance, reverse_slope: feature.reverse, reverse_between: feature.reverse_between,
    danger: feature.danger, reliance: feature.reliance, rank: feature.rank,
    verdict: feature.verdict, reason: feature.reason,
  })));
  const names = rows.length ? Object.keys(rows[0]) : ["feature"];
  const columns = Object.fromEntries(names.map((name) => [name, rows.map((row) => row[name])]));
  for (const [name, values] of Object.entries(data.held_out?.errors ?? {})) columns[`left_out_error_${name.replaceAll(" ", "_")}`] = values;
  if (data.held_out?.environments) columns.left_out_environment = data.held_out.environments;
  return columns;
}
