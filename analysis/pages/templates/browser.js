// The sample browser: filters on an index of all samples, with texts from chunks that are loaded when needed.
"use strict";
const PAGE = 50, OPEN = 4;  // rows per page; chunks of 2 million characters whose texts are kept to be shown
const KEPT = 100, AHEAD = 6;  // chunks whose texts are kept to be searched again, and that are loaded or searched at once
const texts = new Map(), waiting = new Map();  // per chunk: its texts, and the callbacks that wait for its file
const TYPES = { u4: Uint32Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array };
let INDEX;  // names, and a column of numbers for each field of a completion
const $ = (id) => document.getElementById(id);
let rows = 0;  // known when the index is loaded, like INDEX and KEYWORDS
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

function decoded(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const characters = atob(base64), bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}
/** A line of JSON, and the bytes after it. */
async function unpack(packed) {
  const stream = new DecompressionStream("gzip"), writer = stream.writable.getWriter();
  writer.write(decoded(packed));
  writer.close();
  const bytes = new Uint8Array(await new Response(stream.readable).arrayBuffer());
  const end = bytes.indexOf(10);
  return [JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))), bytes.slice(end + 1)];
}

/** The texts of a chunk. */
async function unpackTexts(packed) {
  const [held, body] = await unpack(packed);
  held.body = new TextDecoder().decode(body);
  held.starts = new Uint32Array(held.units.length + 1);  // where each completion begins in the body
  held.units.forEach((units, i) => { held.starts[i + 1] = held.starts[i] + units; });
  return held;
}
/** Called by each chunk file. */
function chunk(number, packed) {
  waiting.get(number).forEach((go) => go(packed));
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
/** What a chunk file holds. */
function load(number) {
  return new Promise((go, fail) => {
    if (waiting.has(number)) return waiting.get(number).push(go);
    waiting.set(number, [go]);
    loadScript(`chunk-${number}.js`).catch(fail);
  });
}
/** Have the texts of a chunk at hand. */
async function loadTexts(number) {
  if (!texts.has(number)) texts.set(number, await unpackTexts(await load(number)));
  for (const old of texts.keys()) if (texts.size > OPEN && old !== number) texts.delete(old);
}
/** The last of some growing numbers that is not above a value. */
function last(numbers, value) {
  let low = 0, high = numbers.length;
  while (high - low > 1) { const middle = (low + high) >> 1; if (numbers[middle] <= value) low = middle; else high = middle; }
  return low;
}
const chunkOf = (row) => last(INDEX.first, row);
const end = (number) => INDEX.first[number + 1] ?? rows;  // of a chunk: the row after its last
function completion(row) {
  const held = texts.get(chunkOf(row)), place = row - INDEX.first[chunkOf(row)];
  return held.body.slice(held.starts[place], held.starts[place + 1]);
}
const prompt = (row) => texts.get(chunkOf(row)).prompts[INDEX.problem[row]];
const answer = (row) => INDEX.answers[INDEX.answer[row]];
const step = (row) => INDEX.steps[INDEX.step[row]];
const benchmark = (row) => INDEX.benchmark[INDEX.problem[row]];

/** The picture of a completion's answer, as an image, so that nothing in it could run. */
function picture(row) {
  const held = texts.get(chunkOf(row)), place = held.picture ? held.picture[row - INDEX.first[chunkOf(row)]] : -1;
  if (place < 0) return null;
  const image = make("img", [], "picture");
  image.src = `data:image/svg+xml;base64,${btoa(held.pictures[place])}`;
  image.alt = `picture of the answer ${visible(answer(row))}`;
  return image;
}

const FIELDS = ["run", "step", "benchmark", "verdict", "min", "max", "text"];
const state = () => Object.fromEntries(FIELDS.map((name) => [name, $(name).value]));

/** The rows that pass all filters but the text. */
function passing(wanted) {
  const run = INDEX.runs.indexOf(wanted.run), at = INDEX.steps.indexOf(+wanted.step), within = INDEX.benchmarks.indexOf(wanted.benchmark);
  const verdict = INDEX.verdicts.map((name) => !wanted.verdict || (wanted.verdict === "not correct" ? name !== "correct" : name === wanted.verdict));
  const least = wanted.min ? +wanted.min : -1, most = wanted.max ? +wanted.max : Infinity, known = wanted.max ? 0 : -1;
  const found = [];
  for (let row = 0; row < rows; row++)
    if ((!wanted.run || INDEX.run[row] === run) && (!wanted.step || INDEX.step[row] === at) && (!wanted.benchmark || benchmark(row) === within) &&
      verdict[INDEX.verdict[row]] && INDEX.length[row] >= least && INDEX.length[row] >= known && INDEX.length[row] <= most) found.push(row);
  return found;
}

/** The places in a chunk of the completions whose text matches. */
function matching({ body, starts }, pattern) {
  const found = [];
  for (let match; (match = pattern.exec(body));) {
    const place = last(starts, match.index), inside = match.index + match[0].length <= starts[place + 1];
    if (inside) found.push(place);
    pattern.lastIndex = inside ? starts[place + 1] : match.index + 1;
  }
  return found;
}

/** Workers, because most of a search is unpacking. A chunk is always searched by the same one, which may keep its texts. */
class Searchers {
  static CODE = `${[decoded, unpack, unpackTexts, last, matching].join("\n")}
    const texts = new Map();  // promises, because another search may ask for a chunk that is being unpacked
    onmessage = async ({ data: { id, number, packed, keep, source } }) => {
      const held = texts.get(number) ?? unpackTexts(packed);
      if (keep) texts.set(number, held);
      postMessage([id, matching(await held, new RegExp(source, "gi"))]);
    };`;
  constructor(count) {
    const code = URL.createObjectURL(new Blob([Searchers.CODE], { type: "text/javascript" }));
    this.workers = Array.from({ length: count }, () => new Worker(code));
    this.asked = new Map();
    this.kept = new Set();
    this.id = 0;
    for (const worker of this.workers) worker.onmessage = ({ data: [id, places] }) => { this.asked.get(id)(places); this.asked.delete(id); };
  }
  async find(number, source) {
    const packed = this.kept.has(number) ? null : await load(number);
    const keep = this.kept.has(number) || this.kept.size < KEPT, id = this.id++;
    if (keep) this.kept.add(number);
    return new Promise((go) => {
      this.asked.set(id, go);
      this.workers[number % this.workers.length].postMessage({ id, number, packed, keep, source });
    });
  }
}
let searchers;

/** Those of some rows, given by chunk, whose text matches. Null if the filter changes meanwhile. */
async function searched(text, candidates) {
  const mine = search, source = text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), numbers = [...candidates.keys()];
  const found = numbers.map(() => []);
  let next = 0, done = 0, count = 0, listed = false;
  searchers ??= new Searchers(navigator.hardwareConcurrency || 2);
  async function lane() {
    while (next < numbers.length && mine === search) {
      const place = next++, number = numbers[place], inside = candidates.get(number);
      const places = await searchers.find(number, source);
      if (mine !== search) return;
      found[place] = places.map((at) => INDEX.first[number] + at).filter((row) => inside.has(row));
      count += found[place].length;
      if (!listed && count >= PAGE) { list(found.flat(), 0); listed = true; }
      $("count").textContent = `${count.toLocaleString("en")} found, reading part ${++done} of ${numbers.length} …`;
    }
  }
  await Promise.all(Array.from({ length: AHEAD }, lane));
  return mine === search ? found.flat() : null;
}

async function filter() {
  const wanted = state();
  search++;
  matches = passing(wanted);
  if (wanted.text) {
    const candidates = new Map();  // by chunk
    for (let from = 0, number = 0; from < matches.length; number++) {
      const inside = new Set();
      for (; from < matches.length && matches[from] < end(number); from++) inside.add(matches[from]);
      if (inside.size) candidates.set(number, inside);
    }
    const found = await searched(wanted.text, candidates);
    if (!found) return;
    matches = found;
  }
  show(0);
}

function verdictOf(row) {
  const name = INDEX.verdicts[INDEX.verdict[row]];
  return make("span", name.replace("_", " "), "verdict " + (name === "correct" ? "correct" : "other"));
}
const title = (run) => visible(INDEX.titles[run]);
const label = (row) => INDEX.labels[`${INDEX.run[row]} ${step(row)}`];

function list(matches, page) {
  $("list").replaceChildren(...matches.slice(page * PAGE, page * PAGE + PAGE).map((row) => {
    const line = make("tr", [
      make("td", make("a", visible(INDEX.problems[INDEX.problem[row]])), "long"), make("td", INDEX.benchmarks[benchmark(row)]),
      make("td", title(INDEX.runs[INDEX.run[row]]), "soft"), make("td", label(row)), make("td", String(INDEX.repeat[row]), "number"), make("td", verdictOf(row)),
      make("td", INDEX.length[row] < 0 ? "–" : String(INDEX.length[row]), "number"),
      make("td", visible(answer(row) ?? "–").slice(0, 80), "long"),
      make("td", visible(INDEX.golds[INDEX.problem[row]] ?? "–").slice(0, 80), "long"),
    ]);
    const link = line.querySelector("a");
    link.href = "#" + fragment(row);
    link.onclick = (event) => { event.preventDefault(); open(row); };
    return line;
  }));
}

function show(page) {
  shownPage = page;
  $("count").textContent = `${matches.length.toLocaleString("en")} of ${rows.toLocaleString("en")} completions`;
  list(matches, page);
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
  settings.href = `../settings.html#settings-${run}`;
  return make("p", [
    make("code", visible(INDEX.files[`${run} ${step(row)} ${benchmark(row)}`] ?? "")), " · ",
    ...(INDEX.trained[run] ? [make("code", visible(`runs/${INDEX.runs[run]}/checkpoints/step-${step(row)}`)), " · "] : []), settings,
  ], "soft file");
}

async function open(row) {
  current = row;
  const number = chunkOf(row);
  await loadTexts(number);
  const same = [], repeats = new Set();
  for (let other = INDEX.first[number]; other < end(number); other++) {
    if (INDEX.problem[other] !== INDEX.problem[row]) continue;
    if (INDEX.repeat[other] === INDEX.repeat[row] && (INDEX.run[other] === INDEX.run[row] || $("allruns").checked)) same.push(other);
    if (INDEX.run[other] === INDEX.run[row] && INDEX.step[other] === INDEX.step[row]) repeats.add(other);
  }
  same.sort((a, b) => INDEX.run[a] - INDEX.run[b] || INDEX.step[a] - INDEX.step[b]);
  $("problem").replaceChildren(
    make("h2", visible(`${INDEX.benchmarks[benchmark(row)]}: ${INDEX.problems[INDEX.problem[row]]}`)),
    make("p", ["gold answer: ", make("code", visible(INDEX.golds[INDEX.problem[row]] ?? "unknown")), " · repeat: ",
      ...[...repeats].map((other) => { const b = make("button", String(INDEX.repeat[other])); b.disabled = other === row; b.onclick = () => open(other); return b; })]),
    make("details", [make("summary", "prompt"), written(prompt(row) ?? "not recorded")]));
  $("problem").querySelector("details").open = true;
  $("sides").replaceChildren(...same.map((other) => {
    const tokens = INDEX.length[other] < 0 ? "" : `, ${INDEX.length[other]} tokens`;
    return make("section", [
      make("h3", [$("allruns").checked ? title(INDEX.runs[INDEX.run[other]]) + ", " : "", label(other), ": ", verdictOf(other)]),
      make("p", ["answer: ", make("code", visible(answer(other) ?? "none found")), make("span", ` finish reason: ${INDEX.finishes[INDEX.finish[other]]}${tokens}`, "soft")]),
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
const identity = (row) => [INDEX.runs[INDEX.run[row]], step(row), INDEX.benchmarks[benchmark(row)], INDEX.problems[INDEX.problem[row]], INDEX.repeat[row]];
function find(wanted) {
  let repeat;
  try { repeat = JSON.parse(wanted)[4]; } catch { return -1; }
  for (let row = 0; row < rows; row++) if (INDEX.repeat[row] === repeat && JSON.stringify(identity(row)) === wanted) return row;
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
  const [names, bytes] = await unpack(PACKED);
  INDEX = names;
  rows = INDEX.rows;
  let offset = 0;  // of a column; those of wider numbers come first
  for (const [name, type] of INDEX.columns) {
    INDEX[name] = new TYPES[type](bytes.buffer, offset, rows);
    offset += INDEX[name].byteLength;
  }
  $("filters").onsubmit = () => false;
  options("run", INDEX.runs, title);
  options("step", INDEX.steps.map(String), (step) => `step ${step}`);
  options("benchmark", INDEX.benchmarks);
  options("verdict", ["not correct", ...INDEX.verdicts], (name) => name.replace("_", " "));
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const name of FIELDS) if (asked.has(name)) $(name).value = asked.get(name);
  const absent = FIELDS.filter((name) => asked.get(name) && $(name).value !== asked.get(name));
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
  for (const name of absent) $("count").textContent += `; this report has no ${name} ${visible(asked.get(name))}, which the link names`;
  booting = false;
  document.body.dataset.ready = "yes";
}
window.onhashchange = () => location.reload();
start();
