"""Data for learning and testing: flights out of New York City in 2013, the weather at its airports, an access log.

The flights and the weather are real data from a Python package; the access log is synthetic.

Belongs here: preparing the data that comes with the workbench.
Does not: how a history is written and read (``spark``, ``connectors/replay``).
"""

from workbench.datasets.flights import flights, flights_history
from workbench.datasets.weather import weather, weather_history

__all__ = ["flights", "flights_history", "weather", "weather_history"]
