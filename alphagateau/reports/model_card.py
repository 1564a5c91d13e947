"""Writes the model card of a run's checkpoint as Markdown."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alphagateau.config import ConfigError, Experiment
from alphagateau.config.searches import describe_search
from alphagateau.games.entries import GAMES, have_equal_moves
from alphagateau.ratings.curves import place_of
from alphagateau.reports.drawing.tables import in_markdown, markdown_table, number
from alphagateau.reports.ladder_page import read_rows
from alphagateau.runs.spent import Spent


class Card(NamedTuple):
    """The facts of a model card."""

    name: str
    folder: str  # of the published checkpoint, as a word of a shell
    run: str  # whose checkpoint it is
    manifest: Mapping[str, Any]
    experiment: Experiment
    record: Mapping[str, Any]  # run.json
    spent: Spent | None  # None: not known
    final: Mapping[str, Any]  # results.json
    ratings: Sequence[Sequence[Mapping[str, str]]]  # of each ladder, rows of its ratings.csv
    labels: Mapping[str, Any]  # manifest.json of the labels it learnt from
    license: str
    notes: Sequence[str]  # sentences on its limits


def model_card(card: Card) -> str:
    """The card's text."""
    boards = ", ".join(card.experiment.boards)
    num_steps = card.manifest["optimizer_steps"]
    manifest, data, folder = card.manifest, card.experiment.data, card.folder
    num_read = manifest["iteration"] * data.frames_per_iteration if data else 0
    check = f"`alphagateau info {folder}` checks the weights and experiment.toml against manifest.json."
    sections = {
        "How it was trained": training_lines(card),
        "Data": [data_sentence(card.experiment, card.labels)],
        "Cost": cost_lines(card.spent, num_steps, num_read, origin_name(card)),
        "Rating": rating_lines(card),
        "Limits": limit_lines(card),
        "Licence": [card.license],
        "Hash": [f"Weights {manifest['weights_hash']}. {check}"],
    }
    lines = [f"# {card.name}", "", f"{network_sentence(card)} It learnt {boards}.", ""]
    lines += [f"    alphagateau play {folder}"]
    for title, body in sections.items():
        lines += ["", f"## {title}", "", *body]
    return "\n".join(lines) + "\n"


def network_sentence(card: Card) -> str:
    """Such as "Network: gateau, 32,001 parameters, hidden_size 32, num_blocks 2"."""
    network, keys = card.manifest["network"], ("size", "hidden_size", "num_blocks", "normalization")
    sizes = "".join(f", {key} {network[key]}" for key in keys if network.get(key))  # 0: as the size says
    return f"Network: {network['architecture']}, {number(card.manifest['parameters'])} parameters{sizes}."


def training_lines(card: Card) -> list[str]:
    """The run, its commands, commits and origin, a line each."""
    experiment, starts = card.experiment, card.record["starts"]
    decay, done, origin = experiment.training.average_decay, card.manifest["iteration"], origin_name(card)
    average = f"an average of the weights of all steps (decay {decay:g} a step)"
    plays = average if decay else "the weights of the last step"
    lines = [f"- iteration {done} of {experiment.num_iterations}, seed {experiment.seed}; {plays}"]
    lines += [f"- began from the weights of {origin}"] if origin else []
    commits = dict.fromkeys(str(start["commit"]) for start in starts if start.get("commit"))
    lines += [f"- code of commit {', '.join(commits)}"] if commits else []
    needs = f", as it was before (weights {card.record['init_from_hash']})" if origin == card.name else ""
    needs += f", with the labels in {experiment.data.path}" if experiment.data else ""
    return [*lines, f"- experiment.toml has every key: `{training_command(card)}` trains it anew{needs}"]


def training_command(card: Card) -> str:
    """The command that trains it anew from a clone, as a run beside the published checkpoint."""
    words = f"alphagateau train {card.folder}/experiment.toml --run {card.name}_anew"
    if origin := card.record.get("init_from"):
        words += f" --init-from {shlex.quote(str(origin_path(origin)))}"
    if (iteration := card.manifest["iteration"]) < card.experiment.num_iterations:
        words += f" --until iterations={iteration}"
    return words


def origin_name(card: Card) -> str:
    """Of the weights that the run began from, as of a player, such as "pre" or "pre/24"; empty: drawn."""
    origin = card.record.get("init_from")
    return str(origin_path(origin).relative_to("checkpoints")).replace("/checkpoints/", "/") if origin else ""


def origin_path(origin: str) -> Path:
    """The path in a clone of a run, one of its checkpoints or a published one, from its former path."""
    path = Path(origin)
    is_of_a_run = path.name.removesuffix("-stopped").isdigit() and path.parent.name == "checkpoints"
    return Path("checkpoints", *path.parts[-3 if is_of_a_run else -1 :])


def data_sentence(experiment: Experiment, labels: Mapping[str, Any]) -> str:
    """The games or labelled positions that it learnt from."""
    selfplay, data = experiment.selfplay, experiment.data
    if data is not None:
        frames, engine, labelled = number(data.frames_per_iteration), labels.get("engine", {}), "with labels"
        if engine:
            labelled = f"labelled ({labels['target']}) by {engine.get('name')}{how_labelled(engine)}"
        return f"Positions {labelled}, {data.path}: {frames} frames an iteration; no games of its own."
    assert selfplay is not None
    plies = f"{number(selfplay.num_games)} games of {number(selfplay.num_plies)} plies an iteration"
    plies += f", {selfplay.boards}" if selfplay.boards != "none" else ""
    lesson = experiment.training.material_positions
    first = f"Material, on {number(lesson)} positions of random games; then its" if lesson else "Its"
    return f"{first} own games alone: {plies}, searched by {describe_search(experiment.search)}."


def how_labelled(engine: Mapping[str, Any]) -> str:
    """The searches that made the labels, by their manifest."""
    nodes = f" at {engine['nodes']} nodes" if "nodes" in engine else ""
    if engine.get("multipv"):
        return f"{nodes} a move, all moves in one search"
    cleared = ", its hash table emptied once a board" if engine.get("clear") == "board" else ""
    return nodes + cleared + (f" ({engine['search']})" if engine.get("search") else "")


def cost_lines(spent: Spent | None, num_steps: int, num_read: int, origin: str = "") -> list[str]:
    """The cost since the first weights were drawn; optimizer steps and labelled positions are those since `origin`.

    Args:
        num_read: labelled positions, counted as often as they were read.
    """
    read = f"{number(num_read)} labelled positions read, " if num_read else ""
    own = f"{read}{number(num_steps)} optimizer steps" + (f" since {origin}" if origin else "")
    if spent is None:
        return [f"- {own}; the run does not say what else it cost"]
    played = f"{number(int(spent.frames))} positions played, " if spent.frames or not num_read else ""
    total = f"{played}{number(int(spent.simulations))} simulations, {spent.flops:.3g} FLOPs of matrix products"
    lines = [f"- {own}", f"- {total}" + (" in all" if origin else "")]
    lines.append(f"- {spent.device_seconds / 3600:.3g} device hours on {', '.join(spent.devices) or 'unknown devices'}")
    return lines + ([f"- {spent.joules / 3.6e6:.3g} kWh"] if spent.joules > 0 else [])


def rating_lines(card: Card) -> list[str]:
    """The ladders' rows of `read_ratings`; the match at the end of the run."""
    own = f"{card.run}/{card.manifest['iteration']}"
    lines = [line for rows in card.ratings for line in ladder_lines(rows, own)]
    final, simulations = card.final, card.final.get("simulations")  # 0: of a search that makes none
    searched = f", {simulations} simulations" if simulations else ""
    if final.get("weights_hash") == card.manifest["weights_hash"]:
        for player, opponent, wins, draws, losses, _ in final["scores"]:
            lines.append(f"- {player} against {opponent}{searched}: +{wins} ={draws} -{losses}")
    return lines or ["Not rated."]


def ladder_lines(rows: Sequence[Mapping[str, str]], own: str) -> list[str]:
    """A table of Elo, under how it was found; the player `own` is the card's network by another name."""
    first = rows[0]
    scale = "mean 1000"
    if anchor := first.get("anchor"):
        at = next((f"{float(row['rating']):z.0f}" for row in rows if row["player"] == anchor), None)
        scale = f"{anchor} at {at}" if at else f"anchored at {anchor}"
    protocol = first.get("protocol") or "played by an unknown protocol"
    found = [["player", "Elo", "games", "score", "search"]]
    for row in rows:
        elo = f"{float(row['rating']):z.0f} ± {2 * float(row['standard_error']):.0f}".replace("nan ± nan", "–")
        player = in_markdown(row["player"]) + (", this network" if row["player"].partition(" (")[0] == own else "")
        found.append([player, elo, row["games"], row["score"], row.get("search", "")])
    heading = f"{first.get('method') or 'unknown method'}, {scale}, ± 2 standard errors; {protocol}."
    return [heading, "", markdown_table(found), ""]


def limit_lines(card: Card) -> list[str]:
    """What is known not to hold."""
    boards = card.experiment.boards
    if card.experiment.network.plays_every_board:
        origin = origin_name(card)
        before = f", and before it what {origin} learnt" if origin else " alone"
        lines = [f"- It learnt on {' and '.join(boards)}{before}; it plays other boards without having seen them."]
    else:
        lines = [f"- It plays {' and '.join(name for name in GAMES if have_equal_moves(name, boards[0]))} only."]
    if card.manifest["order"][1:] != [0, 0]:
        inside = card.manifest["iteration"] + 1
        lines.append(f"- It was stopped inside iteration {inside}: the command above need not give these weights.")
    lines += [f"- Its last iteration was unhealthy: {symptom}" for symptom in card.manifest["symptoms"]]
    return lines + [f"- {note}" for note in card.notes]


def read_ratings(path: Path, names: Sequence[str]) -> list[dict[str, str]]:
    """Rows of a ladder's ratings.csv: the player's, by any of its names, then engines, `random` and published networks.

    Raises ConfigError.
    """
    rows = read_rows(path)
    found = [row for row in rows if row["player"].partition(" (")[0] in names]
    others = [row for row in rows if not place_of(row["player"]) and row not in found]
    if not found:
        raise ConfigError(f"{path} rates no player {names[0]}")
    return found + others
