"use strict";
// What a network says of the position shown in; value bar, table of moves and attention out.

const signed = (value, digits = 2) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
const mateIn = (mate) => (mate < 0 || Object.is(mate, -0) ? "−" : "") + "#" + Math.ceil(Math.abs(mate) / 2);
const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";

// [value of white, what to write of it, where it is from]
function verdict() {
  const own = seen[viewer()], found = own.search[ply], raw = own.values[ply];
  if (isOver(shown())) return [{ "1-0": 1, "0-1": -1 }[shown().result] || 0, shown().result.replace("-", "–").replaceAll("1/2", "½"), shown().reason];
  if (found?.done) {
    const mate = found.moves[0]?.mate;
    return [found.value, mate == null ? signed(found.value) : mateIn(mate), `for White, ${found.done} ${found.unit}`];
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
