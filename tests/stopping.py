"""A request to stop that comes at a known place of a run."""

from alphagateau.runs.stop import StopRequest


class StopAfter(StopRequest):
    """Asks to stop after the run has looked `looks` times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    @property
    def reason(self) -> str | None:
        self.looks -= 1
        return "the test" if self.looks < 0 else None
