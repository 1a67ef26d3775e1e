// Settings in the address, after the #: they stay in the browser, and no data is ever in them.

// "#oscillation?step_size=0.1" -> {name: "oscillation", settings: {step_size: 0.1}}; what is unknown is left out.
export function readAddress(hash, views) {
  const [name, query = ""] = hash.replace(/^#/, "").split("?", 2);
  const view = views.find((each) => each.name === name) ?? views[0];
  const given = new URLSearchParams(query);
  const settings = {};
  for (const input of view.inputs) {
    settings[input.name] = given.has(input.name) && input.kind !== "upload" ? parsed(input, given.get(input.name)) : input.default;
  }
  return { view, settings };
}

export function writeAddress(view, settings) {
  const given = new URLSearchParams();
  for (const input of view.inputs) {
    if (input.kind === "upload") continue; // a link never holds data
    const value = input.kind === "columns" ? JSON.stringify(settings[input.name]) : settings[input.name];
    const usual = input.kind === "columns" ? JSON.stringify(input.default) : input.default;
    if (value !== usual) given.set(input.name, String(value));
  }
  const query = given.toString();
  return `#${view.name}${query ? `?${query}` : ""}`;
}

function parsed(input, text) {
  if (input.kind === "number") {
    const value = text.trim() === "" ? NaN : Number(text);
    if (!Number.isFinite(value)) return input.default;
    const within = Math.min(input.high, Math.max(input.low, value));
    return input.whole ? Math.round(within) : within;
  }
  if (input.kind === "choice") {
    return input.options.find((option) => String(option.value) === text)?.value ?? input.default;
  }
  if (input.kind === "columns") {
    try {
      const names = JSON.parse(text);
      return Array.isArray(names) ? names.filter((name) => typeof name === "string") : input.default;
    } catch { return input.default; }
  }
  return text.slice(0, input.longest ?? 200);
}
