"""What a run says of its progress."""

from alphagateau.runs.logging.progress import Pace


def test_the_first_iteration_which_compiles_tells_the_time_left_until_there_is_another():
    ends = iter([0.0, 60.0, 62.0, 66.0])
    pace = Pace(10, lambda: next(ends))
    assert pace.left(11, 20) == 60.0 * 9
    assert pace.left(12, 20) == 2.0 * 8
    assert pace.left(13, 20) == 3.0 * 7
