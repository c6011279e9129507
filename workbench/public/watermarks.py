"""How watermarks are derived from records."""

from workbench.operators.event_time.punctuated import punctuated
from workbench.operators.event_time.watermarks import INGESTION, WatermarkGenerator, monotonous

__all__ = ["INGESTION", "WatermarkGenerator", "monotonous", "punctuated"]
