"use strict";
// The page keeps the game; the server, asked with the whole of it, knows the rules and the networks.

const find = (selector) => document.querySelector(selector);
const make = (name, parent, attributes = {}, content = "") => {
  const element = document.createElementNS(parent.namespaceURI, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  element.textContent = content;
  return parent.appendChild(element);
};
const fault = (said) => {
  find("#fault").textContent = said;
  find("#fault").hidden = !said;
};
window.addEventListener("error", (event) => fault("This page has a fault: " + event.message));
window.addEventListener("unhandledrejection", (event) => fault(event.reason.message));
document.addEventListener("securitypolicyviolation", (event) => fault("blocked " + event.blockedURI));

const setup = JSON.parse(find("#setup").textContent);
const KINDS = { p: "pawn", n: "knight", b: "bishop", r: "rook", q: "queen", k: "king" };
const SIMULATIONS = [0, 16, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12800];
const VARIED_PLIES = 8;
const COLORS = { w: "White", b: "Black" };

// ---- The state of the page.
let board = null; // one of setup.boards
let plies = []; // positions of the game as the server describes them, the start first
let ply = 0; // the one shown
let players = { w: "you", b: "0" }; // "you", or the number of a checkpoint
let names = null; // of a game that was read from a file: { w, b, result }
let file = []; // its games
let seen = []; // of each checkpoint, what it says of each ply: { values, policy, search, attention }
let thinking = null; // the search in progress: { abort, player, at }
let isFlipped = false, isPaused = false, isMoving = false;
let chosen = "", cursor = "", asked = "", pointed = ""; // squares, and a move of the table
let mode = "policy", layer = 0, head = 0, begun = 0;

const last = () => plies.length - 1;
const shown = () => plies[ply];
const turn = (record) => record.fen.split(" ")[1];
const isOver = (record) => record.result !== "*";
const able = () => setup.players.map((_, i) => String(i)).filter((i) => setup.players[i].boards.includes(board.name));
const simulations = () => +find("#simulations").value;
const isAmongNetworks = () => players.w !== "you" && players.b !== "you";
// How a reply is drawn: networks alone would always play the same game.
const variety = (at) => (isAmongNetworks() && at < VARIED_PLIES ? { temperature: 0.5, seed: Math.floor(Math.random() * 2 ** 31) } : {});
const nameOf = (player) => (player === "you" ? "You" : setup.players[player].name);

// Whose view is shown: the one asked for, else the network whose turn it is, else the other one.
function viewer() {
  const wanted = find("#viewer").value;
  if (able().includes(wanted)) return wanted;
  const color = turn(shown());
  return [players[color], players[color === "w" ? "b" : "w"]].find((player) => player !== "you") || able()[0];
}

// ---- Asking the server.
async function send(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch("/" + path, { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    throw signal?.aborted ? error : new Error("The server does not answer: is `alphagateau board` still running?");
  }
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).error || `The server failed (${response.status}).`);
  return response;
}
const ask = async (path, body) => (await send(path, body)).json();
const about = (at, more = {}) => ({
  board: board.name, fen: plies[0].fen, moves: plies.slice(1, at + 1).map((record) => record.uci), ...more,
});

// ---- The game.
async function begin(name, fen = "", moves = []) {
  const mine = ++begun;
  const found = await ask("positions", { board: name, fen, moves });
  if (mine !== begun) return;
  stop();
  fault("");
  board = setup.boards.find((one) => one.name === name);
  [plies, ply, chosen, asked, names, file, isPaused] = [found, 0, "", "", null, [], false];
  seen = setup.players.map(() => ({ values: [], policy: [], search: [], attention: [] }));
  for (const color of "wb") if (!able().includes(players[color])) players[color] = "you";
  show(0);
  reply();
}

async function append(uci, at = last()) {
  const [record, end] = [plies[at], last()];
  const body = about(at, { since: at + 1 });
  isMoving = true;
  try {
    const [next] = await ask("positions", { ...body, moves: [...body.moves, uci] });
    if (plies[at] !== record || last() !== end) return;
    stop();
    const isFollowed = ply === at;
    cut(at);
    plies.push(next);
    show(isFollowed ? last() : ply);
  } finally {
    isMoving = false;
  }
  reply();
}

function cut(at) {
  plies.length = at + 1;
  if (names) names.result = "*";
  for (const one of seen) for (const list of Object.values(one)) list.length = Math.min(list.length, at + 1);
  if (ply > at) show(at);
}

function show(at) {
  ply = Math.max(0, Math.min(last(), at));
  chosen = pointed = "";
  if (thinking && !thinking.isReply && thinking.at !== ply) stop();
  draw();
  glance().catch((error) => fault(error.message));
}

// The network's move, where it is its turn.
async function reply() {
  const [at, record] = [last(), plies[last()]];
  const player = players[turn(record)];
  if (player === "you" || isPaused || isOver(record)) return draw();
  if (thinking?.isReply && thinking.at === at && thinking.player === player) return;
  const started = performance.now();
  const found = await search(player, at, true);
  if (!found) return;
  if (isAmongNetworks()) await new Promise((done) => setTimeout(done, 500 - (performance.now() - started)));
  if (plies[at] === record && last() === at && !isPaused && players[turn(record)] === player && found.move) await append(found.move);
}

function stop() {
  thinking?.abort.abort();
  thinking = null;
}

// A search of ply `at`, drawn as it goes on. Returns its last report, or null if it was stopped.
async function search(player, at, isReply = false) {
  stop();
  const own = { abort: new AbortController(), player, at, isReply, wanted: simulations(), done: 0 };
  const wanted = { player: +player, simulations: own.wanted, ...(isReply ? variety(at) : {}) };
  const [record, memory] = [plies[at], seen[player]];
  let found = null, rest = "";
  thinking = own;
  draw();
  try {
    const response = await send("search", about(at, wanted), own.abort.signal);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + part.value).split("\n");
      rest = lines.pop();
      for (const line of lines) found = JSON.parse(line);
      if (!found || plies[at] !== record) continue;
      memory.search[at] = found;
      own.done = found.done;
      if (ply === at) drawView();
      drawThinking();
    }
  } catch (error) {
    if (!own.abort.signal.aborted) fault(error.message);
    return null;
  } finally {
    if (thinking === own) thinking = null;
    draw();
  }
  return found && "move" in found ? found : null;
}

// What the networks say without search: the values not yet known, and the policy shown.
async function glance() {
  const [at, record, end, tip] = [ply, shown(), last(), plies[last()]];
  const first = viewer();
  for (const player of [first, ...able().filter((one) => one !== first)]) {
    const own = seen[player];
    const missing = Array.from({ length: end + 1 }, (_, i) => own.values[i]).indexOf(undefined);
    if (missing >= 0) {
      const { values, policy } = await ask("view", about(end, { player: +player, since: missing }));
      if (plies[end] !== tip || own !== seen[player]) return;
      values.forEach((value, i) => (own.values[missing + i] = value));
      own.policy[end] = policy;
    }
    if (!own.policy[at]) {
      const { policy } = await ask("view", about(at, { player: +player, since: at }));
      if (plies[at] !== record) return;
      own.policy[at] = policy;
    }
    if (ply === at) drawView();
    drawCurve();
  }
  if (mode === "attention" && ply === at) await attend();
}

async function attend() {
  const [at, record, player] = [ply, shown(), viewer()];
  if (!seen[player].attention[at]) {
    const found = await ask("attention", about(at, { player: +player }));
    if (plies[at] !== record) return;
    seen[player].attention[at] = found;
  }
  drawView();
}

// ---- Moves by a person.
const mayMove = () => !isMoving && players[turn(shown())] === "you" && !isOver(shown());
const movesFrom = (square) => Object.keys(shown().legal).filter((uci) => uci.startsWith(square));

async function move(from, to) {
  const candidates = movesFrom(from).filter((uci) => uci.slice(2, 4) === to);
  const uci = candidates.length > 1 ? await promotion(candidates) : candidates[0];
  if (uci) play(uci);
}

function play(uci) {
  if (mayMove()) append(uci, ply).catch((error) => fault(error.message));
}

// The move that a person chooses of those that differ in the piece promoted to; undefined if none.
function promotion(candidates) {
  const dialog = find("#promotion"), pieces = dialog.querySelector(".pieces"), color = turn(shown());
  pieces.replaceChildren();
  dialog.returnValue = "";
  for (const letter of "qrbn") {
    const uci = candidates.find((one) => one.endsWith(letter));
    if (!uci) continue;
    const button = make("button", pieces, { "aria-label": KINDS[letter], title: KINDS[letter] });
    button.append(drawing(color === "w" ? letter.toUpperCase() : letter));
    button.addEventListener("click", () => dialog.close(uci));
  }
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue || undefined), { once: true }));
}

function press(square) {
  cursor = square;
  const targets = chosen ? movesFrom(chosen).map((uci) => uci.slice(2, 4)) : [];
  if (mayMove() && targets.includes(square)) {
    const from = chosen;
    chosen = "";
    move(from, square);
  } else {
    chosen = mayMove() && square !== chosen && movesFrom(square).length ? square : "";
    if (mode === "attention") asked = square;
  }
  drawBoard();
  drawView();
}

function type(text) {
  const plain = (one) => one.replace(/[+#=x\s]/g, "").replace(/0/g, "O");
  const found = Object.entries(shown().legal).find(([uci, san]) => uci === text.toLowerCase() || san === text || plain(san) === plain(text));
  if (!mayMove()) say(isOver(shown()) ? "The game is over." : "It is not your move.");
  else if (!found) say(`${text} is no legal move here.`);
  else {
    find("#move").value = "";
    play(found[0]);
  }
}

// ---- Drawing the board.
const cells = {};
const spot = (square) => {
  const [x, y] = [square.charCodeAt(0) - 97, board.size - +square[1]];
  return isFlipped ? [board.size - 1 - x, board.size - 1 - y] : [x, y];
};
const squareAt = (x, y) => (isFlipped ? String.fromCharCode(96 + board.size - x) + (y + 1) : String.fromCharCode(97 + x) + (board.size - y));

function drawing(letter) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 100");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", letter === letter.toUpperCase() ? "white" : "black");
  make("use", svg, { href: "#piece-" + letter.toLowerCase() });
  return svg;
}

function piecesOf(fen) {
  const found = {};
  fen.split(" ")[0].split("/").forEach((row, y) => {
    let x = 0;
    for (const sign of row) {
      if (/\d/.test(sign)) x += +sign;
      else found[String.fromCharCode(97 + x++) + (board.size - y)] = sign;
    }
  });
  return found;
}

function buildGrid() {
  const grid = find("#grid"), key = board.size + (isFlipped ? "f" : "");
  if (grid.dataset.key === key) return;
  const hadFocus = grid.contains(document.activeElement);
  grid.dataset.key = key;
  grid.style.setProperty("--size", board.size);
  grid.replaceChildren();
  for (const name in cells) delete cells[name];
  for (let y = 0; y < board.size; y++) {
    const row = make("div", grid, { role: "row" });
    for (let x = 0; x < board.size; x++) {
      const square = squareAt(x, y), isDark = (square.charCodeAt(0) + +square.slice(1)) % 2 === 0;
      const cell = make("div", row, { role: "gridcell", class: "square" + (isDark ? " dark" : ""), "data-square": square, tabindex: -1 });
      if (x === 0) make("small", cell, { class: "rank", "aria-hidden": true }, square.slice(1));
      if (y === board.size - 1) make("small", cell, { class: "file", "aria-hidden": true }, square[0]);
      cells[square] = cell;
    }
  }
  if (!cells[cursor]) cursor = squareAt(0, board.size - 1);
  if (hadFocus) cells[cursor].focus();
}

function drawBoard() {
  buildGrid();
  const pieces = piecesOf(shown().fen), color = turn(shown()), mine = mayMove();
  const targets = chosen ? movesFrom(chosen).map((uci) => uci.slice(2, 4)) : [];
  for (const square in cells) {
    const cell = cells[square], piece = pieces[square] || "";
    if ((cell.dataset.piece || "") !== piece) {
      cell.dataset.piece = piece;
      cell.querySelector("svg")?.remove();
      if (piece) cell.append(drawing(piece));
    }
    const is = {
      moved: [shown().uci.slice(0, 2), shown().uci.slice(2, 4)].includes(square),
      chosen: square === chosen,
      asked: mode === "attention" && square === asked,
      target: targets.includes(square),
      full: Boolean(piece),
      own: mine && movesFrom(square).length > 0,
      check: shown().check && piece.toLowerCase() === "k" && (piece === "K") === (color === "w"),
    };
    for (const name in is) cell.classList.toggle(name, is[name]);
    const what = piece ? `${piece === piece.toUpperCase() ? "white" : "black"} ${KINDS[piece.toLowerCase()]}` : "empty";
    const notes = [is.target && "legal move", is.check && "in check", is.moved && "last move", is.asked && "attention"].filter(Boolean);
    cell.setAttribute("aria-label", [square, what, ...notes].join(", "));
    cell.setAttribute("aria-selected", is.chosen);
    cell.tabIndex = square === cursor ? 0 : -1;
  }
  find("#grid").dataset.fen = shown().fen;
}

function drawArrow(parent, uci, width, opacity, kind) {
  const [[x0, y0], [x1, y1]] = [spot(uci.slice(0, 2)), spot(uci.slice(2, 4))].map(([x, y]) => [100 * x + 50, 100 * y + 50]);
  const length = Math.hypot(x1 - x0, y1 - y0), [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
  const half = width / 2, head = Math.max(9, width), tall = 1.6 * head, [from, to] = [24, length - 6];
  const outline = [[from, half], [to - tall, half], [to - tall, head], [to, 0], [to - tall, -head], [to - tall, -half], [from, -half]];
  const points = outline.map(([along, across]) => `${(x0 + along * ux - across * uy).toFixed(1)},${(y0 + along * uy + across * ux).toFixed(1)}`);
  const isFaint = pointed && mode !== "line" && pointed !== uci;
  make("polygon", parent, { points: points.join(" "), class: `arrow ${kind}${isFaint ? " faint" : ""}`, "fill-opacity": opacity, "stroke-opacity": opacity });
  return [x0 + 0.34 * (x1 - x0), y0 + 0.34 * (y1 - y0)];
}

// The arrows of the mode: [uci, weight relative to the largest].
function weights() {
  const own = seen[viewer()], found = own.search[ply];
  let pairs = [];
  if (mode === "policy") pairs = Object.entries(own.policy[ply] || {});
  if (mode === "search" && found) pairs = found.moves.map((one) => [one.uci, one.visits]);
  const most = Math.max(...pairs.map(([, weight]) => weight), 1e-9);
  pairs = pairs.map(([uci, weight]) => [uci, weight / most]).filter(([uci, weight]) => weight > 0.04 || uci === pointed);
  return pairs.sort((a, b) => a[1] - b[1]).slice(-10);
}

// The edges into the chosen square: a line each, and a dot where it comes from, by weight.
function drawRays(parent) {
  const edges = edgesInto(asked).reverse(), most = Math.max(...edges.map(([, weight]) => weight), 1e-9);
  if (!edges.length) return;
  const [x1, y1] = spot(asked).map((place) => 100 * place + 50);
  for (const [edge, weight] of edges) {
    const [x0, y0] = spot(edge).map((place) => 100 * place + 50), share = weight / most, long = Math.hypot(x1 - x0, y1 - y0);
    const end = { x2: x1 - (36 * (x1 - x0)) / long, y2: y1 - (36 * (y1 - y0)) / long };
    const isFaint = pointed && pointed !== edge ? " faint" : "", opacity = (0.2 + 0.75 * share).toFixed(2);
    if (long) make("line", parent, { x1: x0, y1: y0, ...end, class: "ray" + isFaint, "stroke-width": (2 + 9 * share).toFixed(1), "stroke-opacity": opacity });
    make("circle", parent, { cx: x0, cy: y0, r: (5 + 11 * share).toFixed(1), class: "source" + isFaint, "fill-opacity": opacity });
  }
  make("circle", parent, { cx: x1, cy: y1, r: 36, class: "ring" });
}

function drawArrows() {
  const arrows = find("#arrows");
  arrows.replaceChildren();
  arrows.setAttribute("viewBox", `0 0 ${100 * board.size} ${100 * board.size}`);
  if (mode === "attention") return drawRays(arrows);
  for (const [uci, weight] of weights()) drawArrow(arrows, uci, 3 + 17 * weight, (0.4 + 0.5 * weight).toFixed(2), mode);
  if (mode !== "line") return;
  const line = (seen[viewer()].search[ply]?.line || []).slice(0, 6);
  const places = line.map(({ uci }, i) => drawArrow(arrows, uci, 15 - 1.6 * i, (0.92 - 0.1 * i).toFixed(2), "line"));
  places.forEach(([x, y], i) => {
    make("circle", arrows, { cx: x, cy: y, r: 15, class: "bubble" });
    make("text", arrows, { x, y, class: "label" }, i + 1);
  });
}

// ---- Drawing what a network thinks.
const signed = (value, digits = 2) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
const mateIn = (mate) => (mate < 0 || Object.is(mate, -0) ? "−" : "") + "#" + Math.ceil(Math.abs(mate) / 2);
const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";

// [value of white, what to write of it, where it is from]
function verdict() {
  const own = seen[viewer()], found = own.search[ply], raw = own.values[ply];
  if (isOver(shown())) return [{ "1-0": 1, "0-1": -1 }[shown().result] || 0, shown().result.replace("-", "–").replaceAll("1/2", "½"), shown().reason];
  if (found?.done) {
    const mate = found.moves[0]?.mate;
    return [found.value, mate == null ? signed(found.value) : mateIn(mate), `for White, ${found.done} simulations`];
  }
  if (raw === undefined) return [0, "…", "compiling for this board"];
  return [raw, signed(raw), "for White, network alone"];
}

function drawBar(value, text, short) {
  const bar = find("#bar"), number = bar.querySelector("b"), isLow = value >= 0 !== isFlipped;
  bar.style.setProperty("--share", `${50 + 50 * value}%`);
  bar.classList.toggle("flipped", isFlipped);
  number.textContent = short;
  number.className = `${isLow ? "low" : "high"} ${value >= 0 ? "dark" : "light"}`;
  bar.setAttribute("aria-label", `Value for White: ${text}`);
}

function drawTable() {
  const own = seen[viewer()], found = own.search[ply], legal = shown().legal, policy = own.policy[ply] || {};
  let rows = Object.entries(policy).sort((a, b) => b[1] - a[1]).map(([uci, prior]) => ({ uci, prior }));
  if (found) rows = found.moves;
  const total = Math.max(1, rows.reduce((sum, row) => sum + (row.visits || 0), 0));
  const most = Math.max(...rows.map((row) => row.prior), 1e-9), mostVisits = Math.max(...rows.map((row) => row.visits || 0), 1);
  const body = find("#considered tbody"), focused = document.activeElement?.closest?.("#considered tr")?.dataset.uci;
  body.replaceChildren();
  for (const { uci, prior, visits, value, mate } of rows) {
    if (!(uci in legal)) continue;
    const row = make("tr", body, { "data-uci": uci }), cell = make("td", row);
    make("button", cell, { title: mayMove() ? "Play this move" : "Show this move" }, legal[uci]);
    make("td", row, { class: "share policy" }, percent(prior)).style.setProperty("--share", prior / most);
    const isSearched = visits !== undefined;
    make("td", row, { class: "share visits" }, isSearched ? visits : "–").style.setProperty("--share", isSearched ? visits / mostVisits : 0);
    if (isSearched) row.cells[2].title = percent(visits / total);
    make("td", row, {}, mate != null ? mateIn(mate) : value == null ? "–" : signed(value));
    if (focused === uci) cell.firstChild.focus();
  }
  const line = find("#line"), moves = found?.line || [];
  line.textContent = "";
  make("b", line, {}, "Line");
  line.append(moves.length ? numbered(moves.map((one) => one.san)) : "press Search to see what it expects");
}

// "3. Nf3 Nc6 4. d4", from the position shown on.
function numbered(sans) {
  const fields = shown().fen.split(" ");
  return sans.map((san, i) => {
    const isWhite = (fields[1] === "w") === (i % 2 === 0), number = +fields[5] + Math.floor((i + (fields[1] === "b")) / 2);
    return isWhite ? `${number}. ${san}` : i === 0 ? `${number}… ${san}` : san;
  }).join(" ");
}

// The edges of the board into a square, [UCI, weight] in the layer and head that are shown, the heaviest first.
function edgesInto(square) {
  const found = seen[viewer()].attention[ply];
  if (!found) return [];
  const weights = found.layers[layer * (found.heads || 1) + head];
  return found.edges.map((edge, i) => [edge, weights[i] / 10000]).filter(([edge]) => edge.slice(2, 4) === square).sort((a, b) => b[1] - a[1]);
}

function drawAttention() {
  const own = seen[viewer()], found = own.attention[ply], body = find("#edges tbody");
  if (!cells[asked]) {
    const best = Object.entries(own.policy[ply] || {}).sort((a, b) => b[1] - a[1])[0];
    asked = best ? best[0].slice(2, 4) : cursor;
    drawBoard();
  }
  body.replaceChildren();
  const heads = found?.heads || 0, count = found ? found.layers.length / (heads || 1) : 1;
  layer = Math.min(layer, count - 1);
  head = Math.max(0, Math.min(head, heads - 1));
  find("#heads").hidden = heads < 2;
  find("#head").max = Math.max(1, heads);
  find("#head").value = head + 1;
  find("#head-name").textContent = `Head ${head + 1} of ${heads}`;
  find("#layer").max = count;
  find("#layer").value = layer + 1;
  const half = heads ? "" : `: block ${Math.floor(layer / 2) + 1}, ${layer % 2 ? "second" : "first"} half`;
  const name = `Layer ${layer + 1} of ${count}${half}`;
  find("#layer-name").textContent = name;
  find("#layer").setAttribute("aria-valuetext", name);
  const rows = edgesInto(asked);
  const said = heads ? `${asked} attends to ${rows.length} squares.` : `Into ${asked} run ${rows.length} edges.`;
  find("#attention-title").textContent = found ? `${said} Choose another square on the board.` : "Asking the network…";
  for (const [edge, weight] of rows) {
    const row = make("tr", body, { "data-uci": edge }), piece = KINDS[edge[4]];
    make("button", make("td", row), {}, `${edge.slice(0, 2)} → ${edge.slice(2, 4)}` + (piece ? `, ${piece}` : ""));
    make("td", row, { class: "share attention" }, percent(weight)).style.setProperty("--share", weight / rows[0][1]);
  }
}

function drawView() {
  const [value, text, source] = verdict(), hasEdges = ["gateau", "chessformer"].includes(setup.players[viewer()].architecture);
  if (mode === "attention" && !hasEdges) mode = "policy";
  for (const input of document.querySelectorAll("[name=mode]")) {
    input.checked = input.value === mode;
    if (input.value === "attention") input.disabled = !hasEdges;
  }
  drawBar(value, text, /^[+−]\d/.test(text) ? signed(value, 1) : text);
  find("#value").textContent = text;
  find("#source").textContent = source;
  find("#of-moves").hidden = mode === "attention";
  find("#of-attention").hidden = mode !== "attention";
  if (mode === "attention") drawAttention();
  else drawTable();
  drawArrows();
}

// ---- Drawing the game.
const curveScale = () => Math.max(last(), 16);

function drawCurve() {
  const svg = find("#curve"), x = (i) => ((300 * i) / curveScale()).toFixed(1), y = (value) => (55 - 50 * value).toFixed(1);
  svg.replaceChildren();
  const path = (values) => values.map((value, i) => `${x(i)},${y(value)}`).join(" ");
  const known = (player) => {
    const values = seen[player].values, end = Array.from(plies, (_, i) => values[i]).indexOf(undefined);
    return values.slice(0, end < 0 ? plies.length : end);
  };
  const main = known(viewer());
  if (main.length > 1) {
    const end = x(main.length - 1);
    make("rect", svg, { class: "black-share", width: end, height: 110 });
    make("polygon", svg, { class: "white-share", points: `0,110 ${path(main)} ${end},110` });
  }
  make("line", svg, { class: "zero", x1: 0, x2: 300, y1: 55, y2: 55 });
  for (const player of able()) make("polyline", svg, { class: `trace of-${player}`, points: path(known(player)) });
  make("line", svg, { class: "now", x1: x(ply), x2: x(ply), y1: 0, y2: 110 });
  const legend = find("#legend");
  legend.replaceChildren();
  if (able().length > 1) for (const player of able()) make("i", make("span", legend), { class: "of-" + player }).after(nameOf(player));
  else legend.textContent = "Value for White, ply by ply";
  svg.setAttribute("aria-label", `Value for White over ${last()} plies; now ${main[ply] === undefined ? "unknown" : signed(main[ply])}`);
}

function drawMoves() {
  const list = find("#moves");
  list.replaceChildren();
  plies.slice(1).forEach((record, i) => {
    const fields = plies[i].fen.split(" "), isBlack = fields[1] === "b";
    if (!isBlack || i === 0) make("span", list, {}, fields[5] + ".");
    if (isBlack && i === 0) make("span", list, {}, "…");
    const button = make("button", list, { "data-ply": i + 1 }, record.san);
    if (i + 1 === ply) button.setAttribute("aria-current", "true");
  });
  const result = isOver(plies[last()]) ? `${plies[last()].result} ${plies[last()].reason}` : names && names.result !== "*" ? names.result : "";
  if (result) make("p", list, {}, result);
  if (last() === 0) make("p", list, { class: "none" }, "No move yet.");
  const current = list.querySelector("[aria-current]");
  list.scrollTop = current ? current.offsetTop - list.clientHeight / 2 : 0;
  find("#fen").textContent = shown().fen;
}

function fill(select, options, value) {
  const key = JSON.stringify(options); // the same options stay, so that a list a person has opened stays open
  if (select.dataset.key !== key) {
    select.replaceChildren();
    for (const [name, text] of options) make("option", select, { value: name }, text);
  }
  select.dataset.key = key;
  select.value = value;
}

function drawSeats() {
  for (const seat of document.querySelectorAll(".seat")) {
    const color = (seat.dataset.seat === "top") === isFlipped ? "w" : "b", player = players[color];
    seat.querySelector("i").className = color === "w" ? "is-white" : "is-black";
    seat.querySelector(".sr").textContent = COLORS[color];
    seat.querySelector("select").dataset.color = color;
    const you = names && player === "you" ? names[color] : "You";
    fill(seat.querySelector("select"), [["you", you], ...able().map((i) => [i, nameOf(i)])], player);
    const { architecture, parameters } = setup.players[player] || {};
    seat.querySelector("small").textContent = player === "you" ? "" : `${architecture}, ${parameters.toLocaleString("en").replaceAll(",", " ")} parameters`;
    seat.classList.toggle("turn", turn(shown()) === color && !isOver(shown()));
  }
}

function drawThinking() {
  const bar = find("#thinking");
  bar.classList.toggle("on", thinking !== null && thinking.wanted > 0);
  bar.max = thinking?.wanted || 1;
  bar.value = thinking?.done || 0;
  find("#search").textContent = thinking ? "Stop" : "Search";
}

function say(text) {
  if (find("#status").textContent !== text) find("#status").textContent = text;
}

// "knight takes f6, check" of "Nxf6+".
function spoken(san) {
  const side = /^O-O(-O)?/.exec(san);
  const words = [];
  if (side) words.push(side[1] ? "castles on the queen's side" : "castles on the king's side");
  else {
    const [, piece, from, takes, to, promoted] = /^([NBRQK]?)([a-h]?[1-8]?)(x?)([a-h][1-8])(?:=([NBRQ]))?/.exec(san);
    words.push(KINDS[(piece || "p").toLowerCase()] + (from && piece ? ` on ${from}` : ""), takes ? "takes" : "to", to);
    if (promoted) words.push(`and becomes a ${KINDS[promoted.toLowerCase()]}`);
  }
  return words.join(" ") + (san.endsWith("#") ? ", checkmate" : san.endsWith("+") ? ", check" : "");
}

function drawStatus() {
  const record = shown(), color = turn(record), parts = [];
  if (ply > 0) parts.push(`${COLORS[color === "w" ? "b" : "w"]}: ${spoken(record.san)}.`);
  if (ply < last()) parts.push(`Move ${ply} of ${last()}.`);
  else if (isOver(record)) parts.push(record.result === "1/2-1/2" ? `A draw by ${record.reason}.` : `${record.result === "1-0" ? "White" : "Black"} wins.`);
  else if (players[color] !== "you") parts.push(isPaused ? "Paused." : `${nameOf(players[color])} thinks.`);
  else if (players.w === players.b) parts.push(`${COLORS[color]} to move.`);
  else parts.push("Your move.");
  say(parts.join(" "));
}

// The ply to go back to; -1 if there is none.
function before() {
  const isMixed = (players.w === "you") !== (players.b === "you");
  for (let at = last() - 1; at >= 0; at--) if (!isMixed || players[turn(plies[at])] === "you") return at;
  return -1;
}

function draw() {
  drawBoard();
  drawSeats();
  drawView();
  drawCurve();
  drawMoves();
  drawThinking();
  drawStatus();
  find("#boards").value = board.name;
  find("#undo").disabled = before() < 0;
  for (const name of ["first", "back"]) find(`[data-go=${name}]`).disabled = ply === 0;
  for (const name of ["on", "last"]) find(`[data-go=${name}]`).disabled = ply === last();
  find("#pause").hidden = players.w === "you" && players.b === "you";
  find("#pause").textContent = isPaused ? "Go on" : "Pause";
  find("#whose").hidden = able().length < 2;
  find("#which").hidden = file.length < 2;
  find("#search").disabled = isOver(shown()) || !Object.keys(shown().legal).length;
}

// ---- What a person does.
const go = { first: () => show(0), back: () => show(ply - 1), on: () => show(ply + 1), last: () => show(last()) };

function flip() {
  isFlipped = !isFlipped;
  draw();
}

function undo() {
  const at = before();
  if (at < 0) return;
  stop();
  if (isAmongNetworks()) isPaused = true;
  cut(at);
  show(at);
  reply();
}

function swap() {
  stop();
  players = { w: players.b, b: players.w };
  isFlipped = !isFlipped;
  draw();
  reply();
}

function pause() {
  isPaused = !isPaused;
  if (isPaused) stop();
  draw();
  reply();
}

// White's value of each position from the first move on, as far as the network that is looked through has seen them.
function valuesSeen() {
  const own = seen[viewer()], found = plies.map((_, at) => own.search[at]?.value ?? own.values[at]).slice(1);
  const missing = found.indexOf(undefined);
  return missing < 0 ? found : found.slice(0, missing);
}

async function save() {
  const name = (color) => (players[color] === "you" ? names?.[color] || "Human" : `${players[color]}`);
  const asked = { white: name("w"), black: name("b"), simulations: simulations(), values: valuesSeen() };
  const { pgn } = await ask("write-pgn", about(last(), asked));
  const link = make("a", document.body, { download: `${board.name}.pgn`, href: URL.createObjectURL(new Blob([pgn], { type: "application/x-chess-pgn" })) });
  link.click();
  URL.revokeObjectURL(link.href);
  link.remove();
  say("The game is saved as PGN.");
}

async function openGame(games, number) {
  const game = games[number];
  if (!setup.boards.some((one) => one.name === game.board)) throw new Error(`No checkpoint here plays ${game.board}.`);
  const were = players;
  players = { w: "you", b: "you" };
  try {
    await begin(game.board, game.fen, game.moves);
  } catch (error) {
    players = were;
    throw error;
  }
  file = games;
  names = { w: game.white, b: game.black, result: game.result };
  fill(find("#games"), games.map((one, i) => [i, `${i + 1}. ${one.white} – ${one.black}`]), number);
  draw();
}

async function inDialog(work) {
  find("#opening-fault").textContent = "";
  try {
    await work();
    find("#opening").close();
  } catch (error) {
    find("#opening-fault").textContent = error.message;
  }
}

const on = (selector, kind, act) => find(selector).addEventListener(kind, act);
on("#new", "click", () => begin(board.name));
on("#boards", "change", (event) => begin(event.target.value));
on("#open", "click", () => {
  find("#given-fen").value = shown().fen;
  find("#opening-fault").textContent = "";
  find("#opening").showModal();
});
on("#save", "click", () => save());
on("#set-up", "submit", (event) => {
  event.preventDefault();
  inDialog(() => begin(board.name, find("#given-fen").value));
});
on("#read", "submit", (event) => {
  event.preventDefault();
  inDialog(async () => {
    const picked = find("#given-file").files[0];
    const games = await ask("read-pgn", { pgn: find("#given-pgn").value || (picked ? await picked.text() : "") });
    await openGame(games, 0);
  });
});
on("#games", "change", (event) => openGame(file, +event.target.value));
on(".steps", "click", (event) => go[event.target.closest("button")?.dataset.go]?.());
on("#undo", "click", undo);
on("#swap", "click", swap);
on("#flip", "click", flip);
on("#pause", "click", pause);
on("#search", "click", () => {
  if (!thinking) return void search(viewer(), ply);
  if (thinking.isReply) isPaused = true;
  stop();
  draw();
});
on("#typed", "submit", (event) => {
  event.preventDefault();
  const text = find("#move").value.trim();
  if (text) type(text);
});
on("#viewer", "change", () => show(ply));
on("#simulations", "change", () => {
  if (!thinking?.isReply) return;
  stop();
  reply();
});
on("#modes", "change", (event) => {
  mode = event.target.value;
  drawBoard();
  drawView();
  if (mode === "attention") attend().catch((error) => fault(error.message));
});
on("#layer", "input", (event) => {
  layer = +event.target.value - 1;
  drawView();
});
on("#head", "input", (event) => {
  head = +event.target.value - 1;
  drawView();
});
on("#moves", "click", (event) => {
  if (event.target.dataset.ply) show(+event.target.dataset.ply);
});
on("#curve", "click", (event) => {
  const box = find("#curve").getBoundingClientRect();
  show(Math.round((curveScale() * (event.clientX - box.left)) / box.width));
});
for (const seat of document.querySelectorAll(".seat select")) {
  seat.addEventListener("change", () => {
    players[seat.dataset.color] = seat.value;
    stop();
    draw();
    reply();
  });
}
for (const table of [find("#considered"), find("#edges")]) {
  const point = (event) => {
    const uci = event.type === "mouseleave" || event.type === "focusout" ? "" : event.target.closest("tr")?.dataset.uci || "";
    if (uci === pointed) return;
    pointed = uci;
    drawArrows();
  };
  for (const kind of ["mouseover", "mouseleave", "focusin", "focusout"]) table.addEventListener(kind, point);
}
on("#considered", "click", (event) => {
  const uci = event.target.closest("button") && event.target.closest("tr").dataset.uci;
  if (uci) play(uci);
});

// The board by pointer: press a piece and then a square, or drag it with a mouse.
let drag = null;
on("#grid", "click", (event) => {
  const cell = event.target.closest(".square");
  if (cell) press(cell.dataset.square);
});
on("#grid", "pointerdown", (event) => {
  const cell = event.target.closest(".own");
  if (cell && event.pointerType === "mouse" && event.button === 0) drag = { cell, x: event.clientX, y: event.clientY, isOn: false };
});
window.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
  if (!drag.isOn && Math.hypot(x, y) < 6) return;
  if (!drag.isOn) {
    drag.isOn = true;
    chosen = "";
    press(drag.cell.dataset.square);
    drag.cell.style.setProperty("z-index", 2);
  }
  drag.cell.querySelector("svg")?.style.setProperty("transform", `translate(${x}px, ${y}px)`);
});
window.addEventListener("pointerup", (event) => {
  if (!drag) return;
  const { cell, isOn } = drag;
  drag = null;
  if (!isOn) return;
  cell.style.removeProperty("z-index");
  cell.querySelector("svg")?.style.removeProperty("transform");
  const over = document.elementFromPoint(event.clientX, event.clientY)?.closest(".square");
  if (over && over !== cell) press(over.dataset.square);
});

// The board by keyboard: arrows over the squares, Enter or the space bar to press one; elsewhere arrows step.
on("#grid", "keydown", (event) => {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in steps) {
    const [x, y] = spot(cursor), [dx, dy] = steps[event.key];
    cursor = squareAt(Math.max(0, Math.min(board.size - 1, x + dx)), Math.max(0, Math.min(board.size - 1, y + dy)));
    drawBoard();
    cells[cursor].focus();
  } else if (event.key === "Enter" || event.key === " ") press(cursor);
  else if (event.key === "Escape") {
    chosen = "";
    drawBoard();
  } else return;
  event.preventDefault();
  event.stopPropagation();
});
document.addEventListener("keydown", (event) => {
  const steps = { Home: "first", ArrowLeft: "back", ArrowRight: "on", End: "last" };
  const isTaken = event.target.closest("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey;
  if (isTaken) return;
  if (event.key === "f") flip();
  else if (Object.hasOwn(steps, event.key)) {
    event.preventDefault();
    go[steps[event.key]]();
  }
});
window.addEventListener("pagehide", stop);

// ---- The start.
fill(find("#boards"), setup.boards.map((one) => [one.name, one.title]), setup.board);
fill(find("#simulations"), SIMULATIONS.map((count) => [count, count || "0 (policy alone)"]), 200);
fill(find("#viewer"), [["", "who moves"], ...setup.players.map((one, i) => [i, one.name])], "");
find("#about").textContent = setup.players.map((one) => `${one.name}: ${one.architecture}, weights ${one.hash}, learnt ${one.game}`).join(" · ");
begin(setup.board);
