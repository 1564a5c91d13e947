"use strict";
// What a person does with mouse and keyboard in, changes of the game out; then the start.

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
  const name = (color) => names?.[color] || "Human", number = (color) => (players[color] === "you" ? -1 : +players[color]);
  const who = { white: name("w"), black: name("b"), white_player: number("w"), black_player: number("b") };
  const asked = { ...who, result: names?.result || "*", simulations: simulations(), values: valuesSeen() };
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

// The name of the board with as many rows as a FEN: the one shown, if it is one of them.
function boardOf(fen) {
  const size = fen.trim().split(/\s/)[0].split("/").length;
  return ([board, ...setup.boards].find((one) => one.size === size) || board).name;
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
  find("#given-fen").select(); // so that what is typed or pasted takes its place
});
on("#save", "click", () => save());
on("#set-up", "submit", (event) => {
  event.preventDefault();
  const fen = find("#given-fen").value;
  inDialog(() => begin(boardOf(fen), fen));
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
