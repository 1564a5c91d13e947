"use strict";
// The game as it goes on: positions, the networks' searches and replies, and a person's moves.

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
      if (found?.error) throw new Error(found.error);
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
