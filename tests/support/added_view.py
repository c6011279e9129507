"""A view from outside of the package, as a test adds one: one module with a part, and one entry for the table."""

from workbench.dashboard.charts.html import table
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.contract.view_table import ViewSpec
from workbench.telemetry.frames import Frame


class RatesPart(Part):
    """Records per second of every vertex."""

    hint = "records/s"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._piece = easel.texts.piece("Rates")
        self.models = [self._piece.div]

    def update(self, frame: Frame) -> None:
        rows = (
            f"<tr><td>{vertex.name}</td><td>{vertex.metrics['numRecordsIn']}</td></tr>" for vertex in frame.vertices
        )
        self._piece.write(table(("vertex", "records in"), rows))


RATES = ViewSpec("rates", "Rates", "Records of every vertex", f"{__name__}:RatesPart")
