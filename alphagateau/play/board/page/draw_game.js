"use strict";
// The game in; curve, moves, seats, and the words of the status out.

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
