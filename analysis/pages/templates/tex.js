// Convert the TeX that is common in completions to MathML. Anything else is shown as written.
"use strict";
const MATHML = "http://www.w3.org/1998/Math/MathML";
const known = (entries) => new Map(Object.entries(entries));  // a plain object also has a `constructor`
const SYMBOLS = known({
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ϵ", varepsilon: "ε", zeta: "ζ", eta: "η", theta: "θ",
  iota: "ι", kappa: "κ", lambda: "λ", mu: "μ", nu: "ν", xi: "ξ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "ϕ",
  varphi: "φ", chi: "χ", psi: "ψ", omega: "ω", Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Xi: "Ξ", Pi: "Π",
  Sigma: "Σ", Phi: "Φ", Psi: "Ψ", Omega: "Ω", infty: "∞", partial: "∂", nabla: "∇", ell: "ℓ", emptyset: "∅", circ: "∘",
  ldots: "…", dots: "…", cdots: "⋯", vdots: "⋮", degree: "°", prime: "′", angle: "∠", triangle: "△", hbar: "ℏ",
});
const OPERATORS = known({
  times: "×", cdot: "⋅", div: "÷", pm: "±", mp: "∓", leq: "≤", le: "≤", geq: "≥", ge: "≥", neq: "≠", ne: "≠", lt: "<",
  gt: ">", approx: "≈", equiv: "≡", sim: "∼", cong: "≅", propto: "∝", to: "→", rightarrow: "→", leftarrow: "←",
  Rightarrow: "⇒", implies: "⟹", iff: "⟺", Leftrightarrow: "⇔", mapsto: "↦", in: "∈", notin: "∉", subset: "⊂",
  subseteq: "⊆", cup: "∪", cap: "∩", setminus: "∖", land: "∧", lor: "∨", neg: "¬", forall: "∀", exists: "∃", mid: "∣",
  parallel: "∥", perp: "⊥", sum: "∑", prod: "∏", int: "∫", lfloor: "⌊", rfloor: "⌋", lceil: "⌈", rceil: "⌉",
  langle: "⟨", rangle: "⟩", "{": "{", "}": "}", "|": "‖", "%": "%", "$": "$", "#": "#", "&": "&", _: "_", backslash: "\\",
  therefore: "∴", because: "∵", star: "⋆", ast: "∗", oplus: "⊕", quad: "\u2003", qquad: "\u2003\u2003", ",": "\u2009",
  ";": "\u2005", ":": "\u2005", "!": "", " ": " ",
});
const WORDS = ["sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "exp", "lim", "max", "min", "gcd", "lcm", "mod", "det", "arcsin", "arccos", "arctan", "deg"];
const PLAIN = ["text", "textbf", "textit", "mathrm", "mathbf", "mathit", "operatorname", "mathbb", "mathcal", "boldsymbol", "mbox"];
const IGNORED = ["left", "right", "displaystyle", "limits", "big", "Big", "bigg", "Bigg", "bigl", "bigr", "nonumber", "hline"];
const BRACKETS = known({ pmatrix: "()", bmatrix: "[]", vmatrix: "||", Bmatrix: "{}", cases: "{" });
const ACCENTS = known({ overline: "¯", bar: "¯", hat: "^", vec: "→", tilde: "~", dot: "˙", widehat: "^", overrightarrow: "→" });
const CHARACTERS = known({ "*": "∗", "-": "−", "'": "′", "~": " " });

function element(name, ...children) {
  const made = document.createElementNS(MATHML, name);
  for (const child of children) made.append(child);
  return made;
}

function texTokens(source) {
  return source.match(/\\[a-zA-Z]+|\\[\s\S]|\s+|\d+(?:[.,]\d+)*|[\s\S]/gu) || [];
}

/** A MathML element for TeX source. Throws if the source is not supported. */
function mathml(source, display) {
  const tokens = texTokens(source);
  let at = 0, depth = 0;
  const peek = () => tokens[at];
  const spaces = () => { while (at < tokens.length && /^\s+$/.test(tokens[at])) at++; };
  const fail = (why) => { throw new Error(why); };

  function raw() {  // the source between a pair of braces
    spaces();
    if (peek() !== "{") return at < tokens.length ? tokens[at++] : fail("an argument is missing");
    let open = 0, text = "";
    while (at < tokens.length) {
      const token = tokens[at++];
      if (token === "{" && open++ === 0) continue;
      if (token === "}" && --open === 0) return text;
      text += token;
    }
    return fail("a brace is not closed");
  }
  function argument() {
    spaces();
    if (peek() !== "{") return at < tokens.length ? atom() : fail("an argument is missing");
    at++;
    const row = list(["}"]);
    if (tokens[at++] !== "}") fail("a brace is not closed");
    return row;
  }
  function table(name) {
    const rows = [element("mtr")];
    const bracket = BRACKETS.get(name) ?? "";
    if (name === "array" || name === "tabular") raw();
    for (;;) {
      rows[rows.length - 1].append(element("mtd", list(["&", "\\\\", "\\end"])));
      const token = tokens[at++];
      if (token === "\\\\") rows.push(element("mtr"));
      else if (token === "\\end") { raw(); break; }
      else if (token !== "&") fail("a table is not closed");
    }
    const made = element("mtable", ...rows);
    if (name === "cases" || name.startsWith("align") || name === "array") made.setAttribute("columnalign", "left");
    return element("mrow", ...(bracket[0] ? [element("mo", bracket[0])] : []), made, ...(bracket[1] ? [element("mo", bracket[1])] : []));
  }
  function atom() {
    const token = tokens[at++];
    if (/^\d/.test(token)) return element("mn", token);
    if (token === "{") { at--; return argument(); }
    if (/^\p{L}$/u.test(token)) return element("mi", token);
    if (token[0] !== "\\") return element("mo", CHARACTERS.get(token) ?? token);
    const name = token.slice(1);
    if (IGNORED.includes(name)) { spaces(); return peek() === "." ? (at++, element("mrow")) : element("mrow"); }
    if (["frac", "dfrac", "tfrac", "cfrac"].includes(name)) return element("mfrac", argument(), argument());
    if (["binom", "dbinom", "tbinom"].includes(name)) {
      const pair = element("mfrac", argument(), argument());
      pair.setAttribute("linethickness", "0");
      return element("mrow", element("mo", "("), pair, element("mo", ")"));
    }
    if (name === "sqrt") {
      spaces();
      if (peek() !== "[") return element("msqrt", argument());
      at++;
      const root = list(["]"]);
      at++;
      return element("mroot", argument(), root);
    }
    if (name === "boxed" || name === "fbox") { const made = element("mrow", argument()); made.setAttribute("class", "boxed"); return made; }
    if (PLAIN.includes(name)) return element("mtext", raw());
    if (ACCENTS.has(name)) { const made = element("mover", argument(), element("mo", ACCENTS.get(name))); made.setAttribute("accent", "true"); return made; }
    if (name === "underline") return element("munder", argument(), element("mo", "_"));
    if (name === "pmod") return element("mrow", element("mo", "("), element("mi", "mod"), element("mtext", " "), argument(), element("mo", ")"));
    if (name === "bmod") return element("mi", "mod");
    if (name === "begin") return table(raw().replace("*", ""));
    if (WORDS.includes(name)) return element("mi", name);
    if (SYMBOLS.has(name)) return element("mi", SYMBOLS.get(name));
    if (OPERATORS.has(name)) return element(/^(quad|qquad|[,;:! ])$/.test(name) ? "mtext" : "mo", OPERATORS.get(name));
    if (name === "\\") return element("mtext", " ");
    return fail("\\" + name + " is not supported");
  }
  function list(stops) {
    if (++depth > 60) fail("nested too deeply");
    const row = element("mrow");
    for (;;) {
      spaces();
      if (at >= tokens.length || stops.includes(peek())) { depth--; return row; }
      if (peek() === "&") { at++; continue; }
      let base = /^[_^]$/.test(peek()) ? element("mrow") : peek() === "}" ? fail("a brace too many") : atom();
      let below = null, above = null;
      for (spaces(); peek() === "_" || peek() === "^"; spaces()) {
        if (tokens[at++] === "_") below = argument(); else above = argument();
      }
      if (below && above) base = element("msubsup", base, below, above);
      else if (below) base = element("msub", base, below);
      else if (above) base = element("msup", base, above);
      row.append(base);
    }
  }
  const made = element("math", list([]));
  if (display) made.setAttribute("display", "block");
  return made;
}

const DELIMITED = /\$\$([\s\S]{1,4000}?)\$\$|\\\[([\s\S]{1,4000}?)\\\]|\\\(([\s\S]{1,2000}?)\\\)|\$(?![\s\d.,]*\s)((?:\\.|[^$\n\\]){1,500}?)\$(?!\d)|(\\boxed\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\}){1,400}\})/g;

/** The pieces of a text in order: [is math, source, is display math, text as written]. */
function mathPieces(text) {
  const pieces = [];
  let last = 0;
  for (const found of text.matchAll(DELIMITED)) {
    if (found.index > last) pieces.push([false, text.slice(last, found.index)]);
    const shown = found[1] ?? found[2];
    pieces.push([true, shown ?? found[3] ?? found[4] ?? found[5], shown !== undefined, found[0]]);
    last = found.index + found[0].length;
  }
  if (last < text.length) pieces.push([false, text.slice(last)]);
  return pieces;
}
