// Panels of a view: a heading, a note beside it, and buttons.

// Appends a panel to the stage; returns {panel, heading, setTitle, setNote}. Figures have a caption, so that screen readers
// name them by it.
export function newPanel(stage, { title, note = "", wide = false, figure = false }) {
  const panel = document.createElement(figure ? "figure" : "section");
  panel.className = wide ? "chart wide" : "chart";
  const heading = document.createElement(figure ? "figcaption" : "header");
  const words = document.createElement("h2");
  words.textContent = title;
  const remark = document.createElement("p");
  remark.className = "note";
  remark.textContent = note;
  heading.append(words, remark);
  panel.append(heading);
  stage.append(panel);
  return { panel, heading, setTitle: (text) => { words.textContent = text; }, setNote: (text) => { remark.textContent = text; } };
}

export function newButton(words, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words;
  button.addEventListener("click", act);
  return button;
}

// A list with a setter: sentences, one below the other, set as text.
export function newList() {
  const list = document.createElement("ul");
  list.className = "sentences";
  const set = (sentences) => list.replaceChildren(...sentences.map((sentence) => Object.assign(document.createElement("li"), { textContent: sentence })));
  return { list, set };
}
