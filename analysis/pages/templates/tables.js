// Every table of a page can be sorted by a column, and copied as CSV, LaTeX or Markdown. Without this script it is only read.
"use strict";
const NUMBER = /^[^\d\w]*?([-−+]?\d[\d,]*\.?\d*)/, CELL = "th, td";
const ESCAPES = { "\\": "\\textbackslash{}", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}", "▲": "$\\blacktriangle$", "▼": "$\\blacktriangledown$", "≈": "$\\approx$", "↑": "$\\uparrow$", "↓": "$\\downarrow$", "−": "$-$", "×": "$\\times$", "–": "--", "…": "\\dots{}", "±": "$\\pm$", "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}" };

const shown = (cell) => (cell.dataset.text ?? cell.textContent).replace(/\s+/g, " ").trim();
const grid = (table) => [...table.rows].map((row) => [...row.querySelectorAll(CELL)].map(shown));
const latexText = (text) => text.replace(/[\\^~▲▼≈↑↓−×–…±<>|]|[{}$&#%_]/g, (c) => ESCAPES[c] ?? "\\" + c);
/** As system/text_safety.py writes it. */
const markdownText = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replace(/[\\`*|~$]|\](?=[(\[:])|(?<![\p{L}\p{N}_])_|_(?![\p{L}\p{N}_])/gu, "\\$&");
/** A cell that a spreadsheet would run begins with an apostrophe, as in the files of tables/. */
const csvText = (text) => {
  const safe = /^[=+@\t-]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text) ? "'" + text : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const FORMS = {
  CSV: (rows) => rows.map((row) => row.map(csvText).join(",")).join("\n") + "\n",
  LaTeX: ([head, ...rows]) => {
    const line = (row) => row.map(latexText).join(" & ") + " \\\\";
    return [`\\begin{tabular}{${"l".repeat(head.length)}}`, "\\toprule", line(head), "\\midrule", ...rows.map(line), "\\bottomrule", "\\end{tabular}", ""].join("\n");
  },
  Markdown: ([head, ...rows]) => [head, head.map(() => "---"), ...rows].map((row, i) => `| ${(i === 1 ? row : row.map(markdownText)).join(" | ")} |`).join("\n") + "\n",
};

function button(words, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = words;
  made.onclick = act;
  return made;
}

/** navigator.clipboard is missing where a page has neither HTTPS nor a file's address. */
async function copy(text) {
  try { return await navigator.clipboard.writeText(text); } catch { /* as browsers did it before */ }
  const place = document.createElement("textarea"), focused = document.activeElement;
  place.value = text;
  document.body.append(place);
  place.select();
  const done = document.execCommand("copy");
  place.remove();
  focused?.focus();
  if (!done) throw new Error("the browser refused");
}

function copyButtons(table) {
  const bar = document.createElement("p"), said = document.createElement("span");
  const name = table.caption ? shown(table.caption) : "table";
  bar.className = "tools";
  said.setAttribute("role", "status");
  for (const [form, write] of Object.entries(FORMS)) {
    const made = button(form, async () => {
      try { await copy(write(grid(table))); said.textContent = `copied as ${form}`; } catch { said.textContent = "the browser does not allow copying"; }
    });
    made.setAttribute("aria-label", `Copy as ${form}: ${name}`);
    bar.append(made, " ");
  }
  bar.prepend("copy as ");
  bar.append(said);
  table.parentElement.after(bar);
}

function order(first, second) {
  const [a, b] = [first, second].map((text) => NUMBER.exec(text)?.[1].replaceAll(",", "").replace("−", "-"));
  if (a !== undefined && b !== undefined) return a - b;
  return (a === undefined) - (b === undefined) || first.localeCompare(second, "en", { numeric: true });
}

/** Once: rising; again: falling; a third time: as it was. Rows without a value stay at the end. */
function sort(table, column) {
  const head = table.tHead.rows[0].cells[column], body = table.tBodies[0];
  const next = { none: "ascending", ascending: "descending", descending: "none" }[head.ariaSort ?? "none"];
  for (const cell of table.tHead.rows[0].cells) cell.ariaSort = cell === head ? next : "none";
  table.classList.toggle("sorted", next !== "none");
  const text = (row) => shown(row.cells[column]), empty = (row) => /^–?$/.test(text(row));
  const turn = next === "descending" ? -1 : 1;
  const rows = [...body.rows].sort((a, b) => next === "none" ? a.dataset.place - b.dataset.place : empty(a) - empty(b) || turn * order(text(a), text(b)));
  body.replaceChildren(...rows);
}

for (const table of document.querySelectorAll("table")) {
  if (!table.tHead || !table.tBodies[0]?.rows.length) continue;
  [...table.tBodies[0].rows].forEach((row, place) => { row.dataset.place = place; });
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const made = button("", () => sort(table, column));
    made.append(...cell.childNodes);
    cell.ariaSort = "none";
    cell.append(made);
  });
  copyButtons(table);
}
document.body.dataset.tables = "ready";
