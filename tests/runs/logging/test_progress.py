"""What a run says of its progress."""

from alphagateau.runs.logging.progress import Reporter, TimeLeft


def test_the_first_iteration_which_compiles_tells_the_time_left_until_there_is_another():
    ends = iter([0.0, 60.0, 62.0, 66.0])
    left = TimeLeft(10, lambda: next(ends))
    assert left.seconds(11, 20) == 60.0 * 9
    assert left.seconds(12, 20) == 2.0 * 8
    assert left.seconds(13, 20) == 3.0 * 7


def test_an_iteration_without_a_finished_game_has_its_line(capsys):
    values = {"train/policy_loss": 2.0, "selfplay/games": 0.0, "selfplay/moves_per_second": 50.0}
    Reporter().iteration(1, 3, values, 60.0)
    assert capsys.readouterr().err == "iteration 1/3  policy 2.000  50 moves/s  0:01:00 left\n"
