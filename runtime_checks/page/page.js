"use strict";

// Everything from the program is text: it is put into the page with textContent only.
const data = JSON.parse(document.getElementById("data").textContent);
const calls = data.calls;
const lanes = calls.lanes;
const ROW = 24; // pixels, as in the style
const SPARE = 12; // rows that are drawn above and below what is visible
const WORDY = 130; // pixels from which a lane has room for names
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Text of the program, whatever the direction of its script. */
function told(text) {
  return make("bdi", "", String(text));
}

function short(path) {
  return path === null ? "an unknown line" : path.slice(path.lastIndexOf("/") + 1);
}

function place(path, line) {
  return path === null ? "an unknown line" : `${path}:${line}`;
}

/* The report */

function head() {
  const mood = { clean: "good", diverged: "bad", failed: "bad" }[data.verdict] || "";
  const badge = make("span", `badge ${mood}`, data.verdict + (data.kind ? ` (${data.kind})` : ""));
  const top = make("div", "top", badge);
  if (data.command) top.append(make("code", "", told(data.command)));
  if (data.made) top.append(make("span", "quiet", data.made));
  const found = make("header", "", top, make("h1", "", told(data.message.charAt(0).toUpperCase() + data.message.slice(1))));
  if (data.advice) found.append(make("p", "", make("strong", "", "What to do: "), data.advice));
  return found;
}

function source(path, line) {
  const lines = data.excerpts[`${path}:${line}`];
  if (!lines) return null;
  const found = make("div", "source mono");
  for (const [number, text] of lines) {
    const row = make("div", number === line ? "here" : "", make("span", "number", String(number)), told(text || " "));
    found.append(row);
  }
  return found;
}

/** A list of which the first are shown, and the others on demand. */
function list(items, most, item, name = "plain mono", tag = "ul") {
  const found = make(tag, name, ...items.slice(0, most).map(item));
  if (items.length <= most) return found;
  const rest = make("details", "", make("summary", "", `${items.length - most} more`));
  rest.append(make(tag, name, ...items.slice(most).map(item)));
  return make("div", "", found, rest);
}

function words(argument) {
  return make("li", argument.differs ? "differs" : "", told(argument.words));
}

function card(side) {
  const under = side.state === "calling" || side.state === "waiting";
  let mood = ["raised", "died", "late", "exited"].includes(side.state) ? "bad" : "";
  if (side.state === "finished" && data.verdict !== "diverged") mood = "good";
  let state = side.state;
  if (side.index !== null) state += under ? `, call ${side.index}` : `, after ${side.index} call${side.index === 1 ? "" : "s"}`;
  const found = make("section", "card");
  found.append(make("div", "head", make("h3", "", side.named), make("span", `badge ${mood}`, state)));
  if (side.function || side.file) {
    const where = make("div", "where", make("code", "", make("strong", "", told(side.function || "?"))), " at ");
    where.append(make("code", "", told(place(side.file, side.line))));
    found.append(where);
  }
  if (side.detail) found.append(make("pre", "", told(side.detail)));
  found.append(source(side.file, side.line) || "");
  if (side.static.length) found.append(make("p", "label", "Static arguments"), list(side.static, 12, words));
  if (side.arguments.length) {
    found.append(make("p", "label", "Arguments"), list(side.arguments, 12, words));
    if (side.more) found.append(make("p", "label", `and ${side.more} more that are not in this page`));
  }
  if (side.stack.length) {
    found.append(make("p", "label", "Stack, innermost last"));
    found.append(make("ol", "stack mono", ...side.stack.map((frame) => make("li", "", told(frame)))));
  }
  return found;
}

function sides() {
  if (!data.sides.length) return null;
  const titles = { diverged: "What each process calls, or waits for", late: "Where each process is" };
  const title = titles[data.verdict] || "How each process ended";
  const found = make("section", "", make("h2", "", title), make("div", "cards", ...data.sides.slice(0, 6).map(card)));
  if (data.sides.length > 6) {
    const more = make("details", "", make("summary", "", `${data.sides.length - 6} more places`));
    more.append(make("div", "cards", ...data.sides.slice(6).map(card)));
    found.append(more);
  }
  return found;
}

function modules() {
  if (!data.module) return null;
  const title = make("h2", "", `The lowered modules first differ in line ${data.module.line}`);
  const found = make("section", "", title, make("div", "cards"));
  for (const side of data.module.sides) {
    const text = make("pre", "", told(side.before), make("mark", "", told(side.differs)), told(side.after));
    const one = make("div", "card", make("h3", "", side.named), text);
    if (side.source) one.append(make("div", "", "from ", make("code", "", told(side.source))));
    found.lastChild.append(one);
  }
  return found;
}

function findings() {
  if (!data.findings.length && !data.explained_by.length) return null;
  const found = make("section", "", make("h2", "", data.findings.length ? "What the linter says" : "Rules that may explain it"));
  for (const finding of data.findings) {
    const one = make("div", "card", make("div", "head", make("h3", "", finding.code), make("code", "", told(finding.place))));
    one.append(make("p", "", told(finding.message)));
    if (finding.related.length) {
      const step = (each) => make("li", "", told(each.message), " ", make("code", "quiet", told(each.place)));
      one.append(list(finding.related, 12, step, "stack", "ol"));
    }
    found.append(one);
  }
  if (data.explained_by.length) {
    const text = data.findings.length ? "Rules that may explain it: " : "";
    found.append(make("p", "", text, make("code", "", data.explained_by.join(", ")), " (", make("code", "", "spmdlint rule CODE"), ")."));
  }
  return found;
}

function notes() {
  const found = make("footer", "");
  if (data.notes.length) {
    const items = data.notes.map((note) => make("li", "", told(note)));
    found.append(make("section", "", make("h2", "", "Notes"), make("ul", "", ...items)));
  }
  const table = make("table", "");
  for (const [name, text] of [...Object.entries(data.versions), ...Object.entries(data.layers)]) {
    table.append(make("tr", "", make("th", "", told(name)), make("td", "", told(text))));
  }
  if (table.rows.length) found.append(make("details", "", make("summary", "", "Versions, and layers of the checks"), table));
  found.append(make("p", "", `Written by ${data.made_by}.`));
  return found;
}

/* The table of calls */

const table = {
  many: calls.rows.index.length,
  members: calls.groups.map((group) => new Set(group.members)),
  // Of each lane, by row: what it calls there, where that is not the usual call.
  other: lanes.map((lane) => {
    const found = new Map();
    for (let at = 0; at < lane.other.length; at += 2) found.set(lane.other[at], lane.other[at + 1]);
    return found;
  }),
  /** The number of the call that a lane makes in a row, or a word for why there is none. */
  at(row, lane) {
    const group = calls.rows.group[row];
    const span = lanes[lane].spans[group];
    if (!this.members[group].has(lanes[lane].process)) return row > this.ends[lane] ? "gone" : "apart";
    const index = calls.rows.index[row];
    if (span === undefined || index > span[1]) return "after";
    if (index < span[0]) return "lost";
    const other = this.other[lane].get(row);
    return other === undefined ? calls.rows.call[row] : other;
  },
  /** The calls of a row, the usual one first, each with its processes. */
  sides(row) {
    const found = new Map([[calls.rows.call[row], []]]);
    for (let lane = 0; lane < lanes.length; lane++) {
      const call = this.at(row, lane);
      if (!found.has(call)) found.set(call, []);
      found.get(call).push(lanes[lane].process);
    }
    return found;
  },
  /** Whether the processes run different programs in a row from the difference on. */
  differs(row) {
    if (calls.mark === null || row < calls.mark) return false;
    if (row === calls.mark) return true;
    const usual = calls.calls[calls.rows.call[row]][0];
    return this.other.some((other) => other.has(row) && calls.calls[other.get(row)][0] !== usual);
  },
};
// The last row in which each lane makes a call.
table.ends = lanes.map(() => -1);
for (let lane = 0; lane < lanes.length; lane++) {
  for (let row = table.many - 1; row >= 0 && table.ends[lane] < 0; row--) {
    const span = lanes[lane].spans[calls.rows.group[row]];
    if (span && calls.rows.index[row] >= span[0] && calls.rows.index[row] <= span[1]) table.ends[lane] = row;
  }
}
table.odd = Array.from({ length: table.many }, (_, row) => row).filter((row) => table.differs(row));
table.isOdd = new Set(table.odd);

/** The calls of a row by letters: by what differs in the table, or in the report on that call. */
function letters(row) {
  const found = new Map();
  if (row === calls.mark) {
    data.sides.forEach((side, number) => side.processes.forEach((process) => found.set(process, number)));
    return found;
  }
  if (!table.isOdd.has(row)) return found;
  const seen = new Map();
  for (let lane = 0; lane < lanes.length; lane++) {
    const call = table.at(row, lane);
    if (typeof call !== "number") continue;
    const program = calls.calls[call][0];
    if (!seen.has(program)) seen.set(program, seen.size);
    found.set(lanes[lane].process, seen.get(program));
  }
  return found;
}

/** What most processes do in a row is drawn as usual where lanes are narrow: what differs stands out. */
function most(marks) {
  const counts = new Map();
  for (const side of marks.values()) counts.set(side, (counts.get(side) || 0) + 1);
  const [first, second] = [...counts].sort((a, b) => b[1] - a[1]);
  return first && second && first[1] > second[1] ? first[0] : undefined;
}

function letter(number) {
  return LETTERS[number % 26];
}

class Grid {
  constructor() {
    this.drawn = new Map();
    this.row = calls.mark === null ? Math.max(0, table.many - 1) : calls.mark;
    this.lane = 0;
    this.names = make("div", "names");
    this.names.setAttribute("role", "row");
    this.rows = make("div", "rows");
    this.rows.setAttribute("role", "rowgroup");
    this.box = make("div", "grid", this.names, this.rows);
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "grid");
    this.box.setAttribute("aria-label", "Parallel calls: a row for each call, a column for each process");
    this.box.setAttribute("aria-rowcount", String(table.many));
    this.box.setAttribute("aria-colcount", String(lanes.length + 1));
    this.chosen = make("section", "card chosen-call");
    this.chosen.setAttribute("aria-live", "polite");
    this.box.addEventListener("scroll", () => this.later(), { passive: true });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.measure()).observe(this.box);
  }

  /** Lanes share the width, as long as they are wide enough to be told apart. */
  measure() {
    const width = this.box.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    const digits = String(lanes.length ? lanes[lanes.length - 1].process : 0).length;
    const least = digits * 7 + 5;
    const usual = Math.min(340, Math.max(130, Math.floor(width * 0.36)));
    const left = width - (least | 1) * lanes.length;
    const what = left > 240 ? Math.min(usual, left) : usual; // all lanes in sight, if that leaves room for names
    const share = Math.floor((width - what) / lanes.length);
    this.wordy = share >= WORDY;
    // An odd number has a middle pixel, in which the line of a lane is sharp.
    this.laneWidth = this.wordy ? share : Math.max(least, Math.min(share, 41)) | 1;
    this.whatWidth = Math.max(what, width - this.laneWidth * lanes.length);
    if (!this.wordy) this.whatWidth = Math.min(this.whatWidth, Math.max(what, 560));
    this.box.style.setProperty("--lane-width", `${this.laneWidth}px`);
    this.box.style.setProperty("--what-width", `${this.whatWidth}px`);
    this.names.replaceChildren(make("div", "what", "call"));
    for (const lane of lanes) {
      this.names.append(make("div", "name", (this.wordy ? "process " : "") + lane.process));
    }
    [...this.names.children].forEach((name) => name.setAttribute("role", "columnheader"));
    const full = Math.max(width, this.whatWidth + this.laneWidth * lanes.length);
    this.names.style.width = this.rows.style.width = `${full}px`;
    this.rows.style.height = `${table.many * ROW}px`;
    this.again();
    if (!this.shown) {
      this.shown = true;
      this.choose(this.row, this.lane, "center");
    }
  }

  /** Draw at the next frame, once for all scrolling until then. */
  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  again() {
    for (const row of this.drawn.values()) row.remove();
    this.drawn.clear();
    this.draw();
  }

  range() {
    if (this.printing) return [Math.max(0, this.row - 15), Math.min(table.many, this.row + 15)];
    const first = Math.floor(this.box.scrollTop / ROW) - SPARE;
    const last = Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + SPARE;
    return [Math.max(0, first), Math.min(table.many, last)];
  }

  /** Only the rows in sight are in the page. */
  draw() {
    if (!this.laneWidth) return;
    const [first, last] = this.range();
    for (const [number, row] of this.drawn) {
      if (number < first || number >= last) {
        row.remove();
        this.drawn.delete(number);
      }
    }
    const fresh = document.createDocumentFragment();
    for (let number = first; number < last; number++) {
      if (this.drawn.has(number)) continue;
      const row = this.line(number);
      row.style.transform = `translateY(${(this.printing ? number - first : number) * ROW}px)`;
      this.drawn.set(number, row);
      fresh.append(row);
    }
    this.rows.append(fresh);
  }

  line(number) {
    const odd = table.isOdd.has(number);
    const row = make("div", "row");
    row.id = `row-${number}`;
    row.dataset.row = number;
    row.style.width = this.rows.style.width;
    row.classList.toggle("odd", odd);
    row.classList.toggle("first", number === calls.mark);
    row.classList.toggle("chosen", number === this.row);
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", String(number + 1));
    const [, name, file, line] = calls.calls[calls.rows.call[number]];
    const what = make("div", "what", make("span", "index", String(calls.rows.index[number])));
    what.setAttribute("role", "rowheader");
    what.append(make("span", "called", told(odd ? this.different(number) : name)));
    const group = calls.groups.length > 1 ? `${calls.groups[calls.rows.group[number]].named}, ` : "";
    what.append(make("span", "from", group, told(`${short(calls.files[file])}:${line}`)));
    row.append(what);
    const marks = letters(number);
    if (this.wordy || odd) this.cells(row, number, marks);
    else this.runs(row, number);
    return row;
  }

  different(number) {
    const names = [...table.sides(number).keys()].filter((call) => typeof call === "number").map((call) => calls.calls[call][1]);
    return [...new Set(names)].slice(0, 4).join(" \u2260 ");
  }

  /** One cell for each lane. */
  cells(row, number, marks) {
    const usual = this.wordy ? undefined : most(marks);
    for (let lane = 0; lane < lanes.length; lane++) {
      const call = table.at(number, lane);
      let side = marks.get(lanes[lane].process);
      if (side === usual) side = undefined;
      let cell;
      if (typeof call !== "number") {
        cell = this.without(call, number, lane);
      } else if (side === undefined && !this.wordy) {
        cell = this.run("same", 1);
      } else {
        cell = make("div", `cell ${side === undefined ? "" : `side-${side % 6}`}`);
        if (side !== undefined) cell.append(make("b", "", letter(side)));
        if (this.wordy) {
          const [, name, file, line] = calls.calls[call];
          cell.classList.add("wordy");
          cell.classList.toggle("same", side === undefined);
          cell.append(told(`${name} ${short(calls.files[file])}:${line}`));
        }
      }
      this.mark(cell, number, lane);
      row.append(cell);
    }
  }

  /** Neighbours that do the same are one element: most rows have only one, however many processes there are. */
  runs(row, number) {
    let kind = null;
    let many = 0;
    const flush = () => many && row.append(this.run(kind, many));
    for (let lane = 0; lane < lanes.length; lane++) {
      const call = table.at(number, lane);
      const now = typeof call === "number" ? "same" : call;
      const alone = now === "after" || (number === this.row && lane === this.lane);
      if (now !== kind || alone) {
        flush();
        kind = now;
        many = 0;
      }
      if (alone) {
        const cell = now === "after" ? this.without(now, number, lane) : this.run(now, 1);
        this.mark(cell, number, lane);
        row.append(cell);
        kind = null;
      } else {
        many += 1;
      }
    }
    flush();
  }

  run(kind, many) {
    const run = make("div", `run ${kind}`);
    run.style.width = `${many * this.laneWidth}px`;
    return run;
  }

  /** A lane that has no call in a row; its last state stands where it ends. */
  without(why, number, lane) {
    if (why !== "after") return this.run(why, 1);
    const span = lanes[lane].spans[calls.rows.group[number]];
    const cell = make("div", "cell");
    if (calls.rows.index[number] === (span ? span[1] : 0) + 1) {
      const state = data.states[lanes[lane].process] || "";
      cell.classList.add("ended");
      cell.append(this.wordy ? state || "no call" : "\u00d7");
      cell.title = state;
    }
    return cell;
  }

  mark(cell, number, lane) {
    cell.classList.toggle("aim", number === this.row && lane === this.lane);
    cell.setAttribute("role", "gridcell");
    cell.setAttribute("aria-colindex", String(lane + 2));
  }

  choose(row, lane, block = "nearest") {
    if (!table.many) return;
    const before = this.row;
    this.row = Math.min(table.many - 1, Math.max(0, row));
    this.lane = Math.min(lanes.length - 1, Math.max(0, lane));
    const height = this.box.clientHeight - 30;
    const top = this.row * ROW;
    if (block === "center") this.box.scrollTop = top - height / 2;
    else if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + ROW > this.box.scrollTop + height) this.box.scrollTop = top + ROW - height;
    const left = this.lane * this.laneWidth;
    const width = this.box.clientWidth - this.whatWidth;
    if (left < this.box.scrollLeft) this.box.scrollLeft = left;
    else if (left + this.laneWidth > this.box.scrollLeft + width) this.box.scrollLeft = left + this.laneWidth - width;
    for (const number of [before, this.row]) {
      const old = this.drawn.get(number);
      if (old) old.remove();
      this.drawn.delete(number);
    }
    this.draw();
    this.box.setAttribute("aria-activedescendant", `row-${this.row}`);
    [...this.names.children].forEach((name, number) => name.classList.toggle("now", number === this.lane + 1));
    this.tell();
  }

  /** The chosen call in words, each side with its processes. */
  tell() {
    const row = this.row;
    const group = calls.groups[calls.rows.group[row]];
    const marks = letters(row);
    const usual = this.wordy ? undefined : most(marks);
    const title = `Call ${calls.rows.index[row]} of ${group.named}`;
    const first = row === calls.mark ? make("span", "badge bad", data.verdict === "late" ? "not made by all" : "the first that differs") : null;
    this.chosen.replaceChildren(make("div", "head", make("h3", "", title), first));
    const shown = new Set();
    for (const [call, processes] of table.sides(row)) {
      if (!processes.length || call === "apart" || call === "gone") continue;
      const named = spans(processes);
      if (typeof call !== "number") {
        const why = call === "lost" ? "no longer recorded" : "no such call";
        const states = [...new Set(processes.map((process) => data.states[process]).filter(Boolean))].join(", ");
        this.chosen.append(make("p", "quiet", `${named}: ${why}${call === "after" && states ? ` (${states})` : ""}`));
        continue;
      }
      const [program, name, file, line] = calls.calls[call];
      const side = marks.get(processes[0]);
      const text = make("p", "");
      if (side !== undefined) text.append(side === usual ? "\u25cf " : make("span", `letter side-${side % 6}`, letter(side)));
      text.append(`${named}: `, make("code", "", make("strong", "", told(name))), " at ");
      text.append(make("code", "", told(place(calls.files[file], line))));
      const from = place(calls.files[file], line);
      this.chosen.append(text, (!shown.has(from) && source(calls.files[file], line)) || "");
      shown.add(from);
      const known = calls.programs[program];
      if (!known) continue;
      const facts = Object.entries(known.static).map(([key, value]) => `static ${key} = ${value}`);
      if (known.name) facts.unshift(`name ${known.name}`);
      if (known.value) facts.unshift(`value ${known.value}`);
      facts.push(...known.arguments);
      if (facts.length) this.chosen.append(list(facts, 8, (fact) => make("li", "", told(fact))));
    }
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    const from = event.clientX - this.rows.getBoundingClientRect().left - this.whatWidth;
    const inside = event.clientX - this.box.getBoundingClientRect().left > this.whatWidth;
    this.choose(Number(row.dataset.row), inside ? Math.floor(from / this.laneWidth) : this.lane);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 3);
    const steps = {
      ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1],
      PageDown: [page, 0], PageUp: [-page, 0], Home: [-table.many, 0], End: [table.many, 0],
      j: [1, 0], k: [-1, 0],
    };
    const step = steps[event.key];
    if (step) this.choose(this.row + step[0], this.lane + step[1]);
    else if (event.key === "d") this.first();
    else if (event.key === "n") this.next(1);
    else if (event.key === "p") this.next(-1);
    else if (event.key === "/") this.search.focus();
    else return;
    event.preventDefault();
  }

  first() {
    if (calls.mark !== null) this.choose(calls.mark, this.lane, "center");
  }

  next(way) {
    const rows = way > 0 ? table.odd : [...table.odd].reverse();
    const found = rows.find((row) => (row - this.row) * way > 0);
    if (found !== undefined) this.choose(found, this.lane, "center");
  }

  /** The next row in which any process calls what has this text in its name or place. */
  find(text, way = 1) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return true;
    const fits = calls.calls.map(([, name, file, line]) => `${name} ${place(calls.files[file], line)}`.toLowerCase().includes(wanted));
    for (let step = 1; step <= table.many; step++) {
      const row = (this.row + way * step + table.many * 2) % table.many;
      if (fits[calls.rows.call[row]] || table.other.some((other) => other.has(row) && fits[other.get(row)])) {
        this.choose(row, this.lane, "center");
        return true;
      }
    }
    return false;
  }

  tools() {
    const button = (text, does) => {
      const found = make("button", "", text);
      found.type = "button";
      found.addEventListener("click", () => {
        does();
        this.box.focus({ preventScroll: true });
      });
      return found;
    };
    const many = table.odd.length;
    this.search = make("input", "");
    this.search.type = "search";
    this.search.placeholder = "function or file:line";
    this.search.setAttribute("aria-label", "Find the next call by its function or line");
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.search.setCustomValidity(this.find(this.search.value, event.shiftKey ? -1 : 1) ? "" : "No call has this in its name or line.");
      else if (event.key === "Escape") this.box.focus();
      else this.search.setCustomValidity("");
      if (event.key === "Enter") this.search.reportValidity();
    });
    const found = make("div", "tools");
    if (calls.mark !== null) found.append(button("First difference", () => this.first()));
    if (many > 1) found.append(button("Previous", () => this.next(-1)), button("Next", () => this.next(1)));
    found.append(this.search);
    return found;
  }

  print(now) {
    this.printing = now;
    const [first, last] = this.range();
    this.rows.style.height = `${(now ? last - first : table.many) * ROW}px`;
    this.again();
  }
}

/** "Processes 0-2, 5" */
function spans(numbers) {
  const found = [];
  for (const number of numbers) {
    const last = found[found.length - 1];
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  const text = found.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(", ");
  return `${numbers.length === 1 ? "Process" : "Processes"} ${text}`;
}

function grid() {
  const title = make("h2", "", "The calls of all processes");
  if (!table.many) {
    return make("section", "", title, make("p", "quiet", "No parallel call was recorded."));
  }
  const made = new Grid();
  const counted = `${table.many.toLocaleString("en")} call${table.many === 1 ? "" : "s"} of ${lanes.length} process${lanes.length === 1 ? "" : "es"}`;
  const [before, after] = data.omitted;
  const left = before || after ? `; ${before.toLocaleString("en")} calls before these and ${after.toLocaleString("en")} after them are left out` : "";
  const keys = make("p", "keys");
  const known = [["\u2191 \u2193 \u2190 \u2192", "move"], ["/", "find"]];
  if (calls.mark !== null) known.push(["d", "first difference"]);
  if (table.odd.length > 1) known.push(["n p", "next, previous"]);
  for (const [key, does] of known) keys.append(make("kbd", "", key), ` ${does} \u00a0 `);
  keys.append("\u25cf the usual call");
  if (calls.mark !== null) keys.append(" \u00a0 A B what differs \u00a0 \u00d7 no such call");
  // The keys that lead to a call work from the top of the page as well; arrows scroll it.
  addEventListener("keydown", (event) => {
    if (event.target !== document.body || !["d", "n", "p", "/"].includes(event.key)) return;
    made.box.scrollIntoView({ block: "nearest" });
    made.box.focus({ preventScroll: true });
    made.key(event);
  });
  addEventListener("beforeprint", () => made.print(true));
  addEventListener("afterprint", () => made.print(false));
  return make("section", "", title, make("p", "quiet", counted + left + "."), made.tools(), made.box, keys, made.chosen);
}

document.body.dataset.verdict = data.verdict;
document.getElementById("page").append(
  ...[head(), sides(), modules(), findings(), grid(), notes()].filter((part) => part !== null),
);
