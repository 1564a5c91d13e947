"use strict";
// The state in, the board with its pieces, arrows and rays out.

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
