"""When a failed job restarts."""

from workbench.runtime.settings.restart_strategies import exponential_delay, failure_rate, fixed_delay, no_restart

__all__ = ["exponential_delay", "failure_rate", "fixed_delay", "no_restart"]
