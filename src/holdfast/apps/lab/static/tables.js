// Tables of words and numbers. Their cells may come from an untrusted file: they are set as text, never as markup.

import { newButton, newList, newPanel } from "./panel.js";

// columns: [{name, label, number?: true, long?: true, words?: (value, row) => text, tone?: (row) => class}]; rows: objects.
export function dataTable(stage, { title, note = "", wide = true, tall = false }) {
  const { panel: section, setNote } = newPanel(stage, { title, note, wide });
  const holder = document.createElement("div");
  holder.className = tall ? "data tall" : "data";
  holder.tabIndex = 0; // it scrolls sideways where the window is narrow
  holder.setAttribute("role", "region");
  holder.setAttribute("aria-label", title);
  section.append(holder);
  const draw = (columns, rows, choose = null) => {
    const table = document.createElement("table");
    table.append(head(columns), body(columns, rows, choose));
    holder.replaceChildren(table);
  };
  return { section, draw, setNote, hide: (hidden) => { section.hidden = hidden; } };
}

function head(columns) {
  const row = document.createElement("tr");
  row.append(...columns.map((column) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = column.label;
    if (column.number) cell.className = "number";
    return cell;
  }));
  const group = document.createElement("thead");
  group.append(row);
  return group;
}

function body(columns, rows, choose) {
  const group = document.createElement("tbody");
  for (const each of rows) {
    const row = document.createElement("tr");
    columns.forEach((column, index) => {
      const cell = document.createElement(index === 0 ? "th" : "td");
      if (index === 0) cell.scope = "row";
      const words = column.words ? column.words(each[column.name], each) : String(each[column.name] ?? "");
      if (index === 0 && choose) {
        const button = newButton(words, () => choose(each));
        button.className = "plain";
        cell.append(button);
      } else cell.textContent = words;
      const kinds = [column.number ? "number" : "", column.long ? "long" : "", column.tone ? `verdict ${column.tone(each)}` : ""].filter(Boolean);
      if (kinds.length) cell.className = kinds.join(" ");
      row.append(cell);
    });
    group.append(row);
  }
  return group;
}

// Sentences, one below the other; folded ones open at a click.
export function sentences(stage, { title, folded = false }) {
  const { panel: section, heading } = newPanel(stage, { title, wide: true });
  const { list, set } = newList();
  if (folded) {
    const details = document.createElement("details");
    const opener = document.createElement("summary");
    opener.append(...heading.childNodes);
    details.append(opener, list);
    heading.replaceWith(details);
  } else section.append(list);
  return { draw: (lines) => { section.hidden = lines.length === 0; set(lines); } };
}
