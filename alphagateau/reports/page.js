"use strict";
const fault = (said) => document.documentElement.setAttribute("data-error", said);
window.addEventListener("error", (event) => fault(event.message));
document.addEventListener("securitypolicyviolation", (event) => fault("blocked " + event.blockedURI));
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));
document.addEventListener("click", (event) => {
  const point = event.target.closest(".point");
  if (point) point.closest("figure").querySelector(".readout").textContent = point.querySelector("title").textContent;
});

// Tables: the first click on a header sorts numbers from the largest, texts from A.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const cells = () => [...table.tBodies[0].rows].map((row) => row.cells[column]);
    const isNumber = cells().some((cell) => cell.dataset.order !== undefined);
    head.classList.toggle("number", isNumber);
    head.querySelector("button").addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const down = was ? was === "ascending" : isNumber;
      const value = (cell) => (isNumber ? parseFloat(cell.dataset.order) : cell.textContent);
      const sorted = cells().sort((first, second) => {
        const [a, b] = [value(first), value(second)];
        if (isNumber) return isNaN(a) - isNaN(b) || (down ? b - a : a - b) || 0;
        return (down ? -1 : 1) * a.localeCompare(b, undefined, { numeric: true });
      });
      table.tBodies[0].append(...sorted.map((cell) => cell.parentElement));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}

const viewer = document.querySelector(".viewer");
if (viewer) {
  const find = (selector) => viewer.querySelector(selector);
  const games = JSON.parse(find("script").textContent);
  const board = find(".board");
  const make = (name, parent, attributes, content) => {
    const element = document.createElementNS(parent.namespaceURI, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (content !== undefined) element.textContent = content;
    return parent.appendChild(element);
  };
  let game = -1, ply = 0, flipped = false;

  // A FEN's pieces, row by row from the top: one letter a square, "" if it is empty.
  const read = (fen) => fen.split(" ")[0].split("/").map((row) =>
    (row.match(/\d+|./g) || []).flatMap((sign) => (/^\d/.test(sign) ? Array(+sign).fill("") : [sign])));

  function drawBoard(now, before) {
    const size = now.length;
    board.replaceChildren();
    board.setAttribute("viewBox", `0 0 ${100 * size} ${100 * size}`);
    for (let y = 0; y < size; y++) for (let x = 0; x < size; x++) {
      const [row, column] = flipped ? [size - 1 - y, size - 1 - x] : [y, x];
      const shade = (size - row + column) % 2 ? "dark" : "light";
      const box = { x: 100 * x, y: 100 * y, width: 100, height: 100 };
      make("rect", board, { ...box, class: "square-" + shade });
      const piece = now[row][column] || "";
      if (before && piece !== (before[row][column] || "")) make("rect", board, { ...box, class: "moved" });
      if (x === 0) make("text", board, { x: 5, y: 100 * y + 19 }, size - row);
      if (y === size - 1) make("text", board, { x: 100 * x + 86, y: 100 * size - 7 }, String.fromCharCode(97 + column));
      if (/^[pnbrqk]$/i.test(piece)) {
        const color = piece === piece.toUpperCase() ? "white" : "black";
        make("use", board, { ...box, class: color, href: "#piece-" + piece.toLowerCase() });
      }
    }
  }

  // "12. Nf3", "12... e5": number and side as the FEN before the move has them.
  const numberOf = (fen) => {
    const fields = fen.split(" ");
    return { number: fields[5] || "", isBlack: fields[1] === "b" };
  };

  function drawGame() {
    const { headers, fens, moves, result } = games[game];
    const facts = find(".facts"), list = find(".moves");
    facts.replaceChildren();
    for (const [name, value] of Object.entries(headers)) {
      make("dt", facts, {}, name);
      make("dd", facts, {}, value);
    }
    list.replaceChildren();
    moves.forEach((move, i) => {
      const { number, isBlack } = numberOf(fens[i]);
      if (!isBlack || i === 0) make("span", list, {}, number + ".");
      if (isBlack && i === 0) make("span", list, {}, "…");
      make("button", list, { "data-ply": i + 1 }, move);
    });
    make("p", list, {}, result);
  }

  function show(newGame, newPly) {
    const clamp = (value, last) => Math.max(0, Math.min(last, Math.trunc(value) || 0));
    newGame = clamp(newGame, games.length - 1);
    if (newGame !== game) {
      game = newGame;
      find("select").value = game;
      drawGame();
    }
    const { fens, moves, result } = games[game];
    ply = clamp(newPly, moves.length);
    drawBoard(read(fens[ply]), ply > 0 ? read(fens[ply - 1]) : null);
    const list = find(".moves");
    list.querySelectorAll("[aria-current]").forEach((button) => button.removeAttribute("aria-current"));
    const current = list.querySelector(`[data-ply="${ply}"]`);
    if (current) {
      current.setAttribute("aria-current", "true");
      list.scrollTop = current.offsetTop - list.clientHeight / 2;
    } else list.scrollTop = 0;
    const { number, isBlack } = numberOf(fens[Math.max(ply - 1, 0)]);
    const move = ply ? `${number}${isBlack ? "…" : "."} ${moves[ply - 1]}` : "Start";
    const said = `${move} (${ply} of ${moves.length})` + (ply === moves.length ? `, ${result}` : "");
    find("output").textContent = said;
    board.setAttribute("aria-label", "Board: " + said);
    board.dataset.fen = find(".fen code").textContent = fens[ply];
    find(".place a").href = `#game=${game}&ply=${ply}`;
  }

  const go = {
    first: () => show(game, 0),
    back: () => show(game, ply - 1),
    on: () => show(game, ply + 1),
    last: () => show(game, Infinity),
    flip: () => { flipped = !flipped; show(game, ply); },
  };
  const keys = { Home: "first", ArrowLeft: "back", ArrowRight: "on", End: "last", f: "flip" };

  function follow() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (wanted.has("game") || wanted.has("ply")) {
      show(+wanted.get("game"), +wanted.get("ply"));
      viewer.scrollIntoView();
    }
  }

  games.forEach((one, i) => make("option", find("select"), { value: i }, one.title));
  find(".choice").hidden = games.length < 2;
  find("select").addEventListener("change", (event) => show(+event.target.value, 0));
  find(".buttons").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) go[button.dataset.go]();
  });
  find(".moves").addEventListener("click", (event) => {
    if (event.target.dataset.ply) show(game, +event.target.dataset.ply);
  });
  document.addEventListener("keydown", (event) => {
    const { top, bottom } = viewer.getBoundingClientRect();
    const isSeen = viewer.contains(event.target) || (event.target === document.body && top < innerHeight && bottom > 0);
    const isOther = event.target.closest("select") || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
    if (!isSeen || isOther || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    go[keys[event.key]]();
  });
  window.addEventListener("hashchange", follow);
  show(0, 0);
  follow();
}
