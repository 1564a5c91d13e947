"""What a run says of its progress."""

from alphagateau.runs.logging.progress import TimeLeft


def test_the_first_iteration_which_compiles_tells_the_time_left_until_there_is_another():
    ends = iter([0.0, 60.0, 62.0, 66.0])
    left = TimeLeft(10, lambda: next(ends))
    assert left.seconds(11, 20) == 60.0 * 9
    assert left.seconds(12, 20) == 2.0 * 8
    assert left.seconds(13, 20) == 3.0 * 7
