"""Real data for learning and testing: the flights out of New York City in 2013, and the weather at its airports.

The data comes from a Python package.

Belongs here: preparing the data that comes with the workbench.
Does not: how a history is written and read (``spark``, ``connectors/replay``).
"""

from workbench.datasets.flights import flights, flights_history
from workbench.datasets.weather import weather, weather_history

__all__ = ["flights", "flights_history", "weather", "weather_history"]
