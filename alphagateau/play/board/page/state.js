"use strict";
// What all scripts of the page share: its state, and how the server is asked. They are run in the order of page.html.
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
