"""A live leaderboard: the three best players of each league, by the sum of their points.

Topics that it reads: ``points`` (key: player) and ``players`` (key: player, a table). It writes ``leaderboard`` (key:
league) whenever a board changes: after new points, a new name, or a player who goes to another league or leaves.
"""

import msgspec

from barnabas.streams import App

BOARD_SIZE = 3


class Player(msgspec.Struct):
    name: str
    league: str


class Standing(msgspec.Struct, frozen=True):
    player: str
    name: str
    league: str
    points: int


Board = dict[str, Standing]  # by player


def entered(board: Board, standing: Standing) -> Board:
    return board | {standing.player: standing}


def left(board: Board, standing: Standing) -> Board:
    return {player: other for player, other in board.items() if player != standing.player}


def best(board: Board) -> list[Standing]:
    return sorted(board.values(), key=lambda standing: (-standing.points, standing.name))[:BOARD_SIZE]


app = App("leaderboard")
players = app.table("players", value=Player)
totals = app.stream("points", value=int).group_by_key().reduce(lambda total, points: total + points, store="totals")
standings = totals.join(players, lambda total, player: (total, player)).map_values(
    lambda player, pair: Standing(player, pair[1].name, pair[1].league, pair[0]), value=Standing
)
boards = standings.group_by(lambda standing: (standing.league, standing), key=str, value=Standing).aggregate(
    lambda: Board(), entered, left, value=Board, store="boards"
)
boards.map_values(best, value=list[Standing]).to_stream().to("leaderboard")
