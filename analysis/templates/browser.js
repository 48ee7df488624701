// The sample browser: filters on an index of all samples, with texts from chunks that are loaded when needed.
"use strict";
const PAGE = 50, KEPT = 100;  // rows per page; chunks kept in memory, 2 million characters each
const texts = new Map(), waiting = new Map();  // per chunk: its texts, and the callbacks that wait for them
const $ = (id) => document.getElementById(id);
let rows = 0;  // known when the index is loaded, like INDEX and KEYWORDS themselves
let matches = [], shownPage = 0, search = 0, current = null;

const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const visible = (text) => String(text).replace(HIDDEN, (c) => {
  const code = c.codePointAt(0);
  return code < 32 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
});

function make(name, content, className) {
  const made = document.createElement(name);
  if (className) made.className = className;
  for (const part of [content].flat()) if (part !== undefined && part !== null) made.append(part);
  return made;
}

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
}

/** Called by each chunk file. Drops the oldest chunks, so that a search through all texts does not keep them all. */
async function chunk(number, packed) {
  texts.set(number, await unpack(packed));
  for (const old of texts.keys()) if (texts.size > KEPT) texts.delete(old);
  waiting.get(number).forEach((go) => go());
  waiting.delete(number);
}

/** Load a file beside this page through a script tag, because a page from a disk may not fetch. */
function loadScript(name) {
  return new Promise((go, fail) => {
    const script = document.createElement("script");
    script.src = name;
    script.onload = () => { script.remove(); go(); };
    script.onerror = () => fail(new Error(`${name} is missing beside this page`));
    document.head.append(script);
  });
}
function load(number) {
  if (texts.has(number)) return Promise.resolve();
  return new Promise((go, fail) => {
    if (waiting.has(number)) return waiting.get(number).push(go);
    waiting.set(number, [go]);
    loadScript(`chunk-${number}.js`).catch(fail);
  });
}
const completion = (row) => texts.get(INDEX.chunk[row]).completions[row - INDEX.first[INDEX.chunk[row]]];
const prompt = (row) => texts.get(INDEX.chunk[row]).prompts[INDEX.problem[row]];

/** The picture of a completion's answer, as an image, so that nothing in it could run. */
function picture(row) {
  const held = texts.get(INDEX.chunk[row]), place = held.picture ? held.picture[row - INDEX.first[INDEX.chunk[row]]] : -1;
  if (place < 0) return null;
  const image = make("img", [], "picture");
  image.src = `data:image/svg+xml;base64,${btoa(held.pictures[place])}`;
  image.alt = `picture of the answer ${visible(INDEX.answer[row])}`;
  return image;
}

const FIELDS = ["run", "step", "benchmark", "verdict", "min", "max", "text"];
const state = () => Object.fromEntries(FIELDS.map((name) => [name, $(name).value]));

function passes(row, wanted) {
  return (!wanted.run || INDEX.runs[INDEX.run[row]] === wanted.run) && (!wanted.step || String(INDEX.step[row]) === wanted.step) &&
    (!wanted.benchmark || INDEX.benchmarks[INDEX.benchmark[row]] === wanted.benchmark) &&
    (!wanted.verdict || (wanted.verdict === "not correct" ? INDEX.verdicts[INDEX.verdict[row]] !== "correct" : INDEX.verdicts[INDEX.verdict[row]] === wanted.verdict)) &&
    (!wanted.min || INDEX.length[row] >= +wanted.min) && (!wanted.max || (INDEX.length[row] >= 0 && INDEX.length[row] <= +wanted.max));
}

async function filter() {
  const wanted = state(), mine = ++search;
  const needle = wanted.text.toLowerCase();
  let candidates = [];
  for (let row = 0; row < rows; row++) if (passes(row, wanted)) candidates.push(row);
  if (needle) {
    const kept = [];
    let read = -1;
    for (const row of candidates) {
      if (INDEX.chunk[row] !== read) {
        read = INDEX.chunk[row];
        $("count").textContent = `${kept.length} found, reading chunk ${read + 1} of ${INDEX.first.length} …`;
        await load(read);
        if (mine !== search) return;  // the filter has changed
      }
      if (completion(row).toLowerCase().includes(needle)) kept.push(row);
    }
    candidates = kept;
  }
  matches = candidates;
  show(0);
}

function verdictOf(row) {
  const name = INDEX.verdicts[INDEX.verdict[row]];
  return make("span", name.replace("_", " "), "verdict " + (name === "correct" ? "correct" : "other"));
}
const title = (run) => visible(INDEX.titles[run]);
const label = (row) => INDEX.labels[`${INDEX.run[row]} ${INDEX.step[row]}`];

function show(page) {
  shownPage = page;
  $("count").textContent = `${matches.length.toLocaleString("en")} of ${rows.toLocaleString("en")} completions`;
  $("list").replaceChildren(...matches.slice(page * PAGE, page * PAGE + PAGE).map((row) => {
    const line = make("tr", [
      make("td", make("a", visible(INDEX.problems[INDEX.problem[row]])), "long"), make("td", INDEX.benchmarks[INDEX.benchmark[row]]),
      make("td", title(INDEX.runs[INDEX.run[row]]), "soft"), make("td", label(row)), make("td", String(INDEX.repeat[row]), "number"), make("td", verdictOf(row)),
      make("td", INDEX.length[row] < 0 ? "–" : String(INDEX.length[row]), "number"),
      make("td", visible(INDEX.answer[row] ?? "–").slice(0, 80), "long"),
      make("td", visible(INDEX.golds[INDEX.problem[row]] ?? "–").slice(0, 80), "long"),
    ]);
    const link = line.querySelector("a");
    link.href = "#" + fragment(row);
    link.onclick = (event) => { event.preventDefault(); open(row); };
    return line;
  }));
  $("where").textContent = matches.length ? `${page * PAGE + 1}–${Math.min(matches.length, page * PAGE + PAGE)}` : "none";
  $("previous").disabled = page === 0;
  $("next").disabled = (page + 1) * PAGE >= matches.length;
  remember();
}

function marked(text) {
  const found = [];
  if ($("marks").checked) for (const [source, flags] of KEYWORDS) for (const match of text.matchAll(new RegExp(source, flags + "gu")))
    if (match[0] && !found.some((other) => match.index < other.end && other.start < match.index + match[0].length)) found.push({ start: match.index, end: match.index + match[0].length });
  found.sort((a, b) => a.start - b.start);
  const parts = [];
  let last = 0;
  for (const { start, end } of found) { parts.push(visible(text.slice(last, start)), make("mark", visible(text.slice(start, end)))); last = end; }
  parts.push(visible(text.slice(last)));
  return parts;
}

function written(text) {
  const place = make("div", [], "text");
  for (const [isMath, source, display, asWritten] of $("math").checked ? mathPieces(text) : [[false, text]]) {
    if (!isMath) { place.append(...marked(source)); continue; }
    try { place.append(mathml(visible(source), display)); } catch { place.append(make("code", visible(asWritten))); }
  }
  return place;
}

/** Where a completion comes from: its file, its checkpoint, and their settings. */
function made(row) {
  const run = INDEX.run[row], settings = make("a", "settings");
  settings.href = `../index.html#settings-${run}`;
  return make("p", [
    make("code", visible(INDEX.files[`${run} ${INDEX.step[row]} ${INDEX.benchmark[row]}`] ?? "")), " · ",
    ...(INDEX.trained[run] ? [make("code", visible(`runs/${INDEX.runs[run]}/checkpoints/step-${INDEX.step[row]}`)), " · "] : []), settings,
  ], "soft file");
}

async function open(row) {
  current = row;
  await load(INDEX.chunk[row]);
  const same = [];
  for (let other = INDEX.first[INDEX.chunk[row]]; other < rows && INDEX.chunk[other] === INDEX.chunk[row]; other++)
    if (INDEX.problem[other] === INDEX.problem[row] && INDEX.repeat[other] === INDEX.repeat[row] && (INDEX.run[other] === INDEX.run[row] || $("allruns").checked)) same.push(other);
  same.sort((a, b) => INDEX.run[a] - INDEX.run[b] || INDEX.step[a] - INDEX.step[b]);
  const repeats = new Set();
  for (let other = INDEX.first[INDEX.chunk[row]]; other < rows && INDEX.chunk[other] === INDEX.chunk[row]; other++)
    if (INDEX.problem[other] === INDEX.problem[row] && INDEX.run[other] === INDEX.run[row] && INDEX.step[other] === INDEX.step[row]) repeats.add(other);
  $("problem").replaceChildren(
    make("h2", visible(`${INDEX.benchmarks[INDEX.benchmark[row]]}: ${INDEX.problems[INDEX.problem[row]]}`)),
    make("p", ["gold answer: ", make("code", visible(INDEX.golds[INDEX.problem[row]] ?? "unknown")), " · repeat: ",
      ...[...repeats].map((other) => { const b = make("button", String(INDEX.repeat[other])); b.disabled = other === row; b.onclick = () => open(other); return b; })]),
    make("details", [make("summary", "prompt"), written(prompt(row) ?? "not recorded")]));
  $("problem").querySelector("details").open = true;
  $("sides").replaceChildren(...same.map((other) => {
    const tokens = INDEX.length[other] < 0 ? "" : `, ${INDEX.length[other]} tokens`;
    return make("section", [
      make("h3", [$("allruns").checked ? title(INDEX.runs[INDEX.run[other]]) + ", " : "", label(other), ": ", verdictOf(other)]),
      make("p", ["answer: ", make("code", visible(INDEX.answer[other] ?? "none found")), make("span", ` finish reason: ${INDEX.finishes[INDEX.finish[other]]}${tokens}`, "soft")]),
      picture(other),
      written(completion(other)),
      made(other),
    ], other === row ? "side chosen" : "side");
  }));
  $("detail").hidden = false;
  remember();
  if (!booting) $("detail").scrollIntoView({ behavior: "smooth" });
}

/** What a link to a completion names, so that it leads to the same one in a later report. */
const identity = (row) => [INDEX.runs[INDEX.run[row]], INDEX.step[row], INDEX.benchmarks[INDEX.benchmark[row]], INDEX.problems[INDEX.problem[row]], INDEX.repeat[row]];
function find(wanted) {
  for (let row = 0; row < rows; row++) if (JSON.stringify(identity(row)) === wanted) return row;
  return -1;
}

function fragment(row) {
  const parts = new URLSearchParams(Object.entries(state()).filter(([, value]) => value));
  if (row !== null) parts.set("open", JSON.stringify(identity(row)));
  return parts.toString();
}
function remember() { history.replaceState(null, "", "#" + fragment(current)); }

function options(name, values, shown) {
  $(name).replaceChildren(new Option("all", ""), ...values.map((value) => new Option(visible(shown ? shown(value) : value), value)));
  $(name).onchange = filter;
}
let booting = true;
async function start() {
  await loadScript("samples-index.js");
  rows = INDEX.verdict.length;
  $("filters").onsubmit = () => false;
  options("run", INDEX.runs, title);
  options("step", [...new Set(INDEX.step)].sort((a, b) => a - b).map(String), (step) => `step ${step}`);
  options("benchmark", INDEX.benchmarks);
  options("verdict", ["not correct", ...INDEX.verdicts], (name) => name.replace("_", " "));
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const name of FIELDS) if (asked.has(name)) $(name).value = asked.get(name);
  let timer = 0;
  for (const name of ["min", "max", "text"]) $(name).oninput = () => { clearTimeout(timer); timer = setTimeout(filter, 250); };
  for (const name of ["math", "marks", "allruns"]) $(name).onchange = () => current !== null && open(current);
  $("previous").onclick = () => show(shownPage - 1);
  $("next").onclick = () => show(shownPage + 1);
  $("close").onclick = () => { current = null; $("detail").hidden = true; remember(); };
  await filter();
  const wanted = asked.get("open");
  if (wanted === "first" && matches.length) await open(matches[0]);
  else if (wanted && wanted !== "first") {
    const row = find(wanted);
    if (row >= 0) await open(row); else $("count").textContent += "; the completion of this link is not here";
  }
  booting = false;
  document.body.dataset.ready = "yes";
}
window.onhashchange = () => location.reload();
start();
