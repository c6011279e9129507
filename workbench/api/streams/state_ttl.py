"""How long an operator keeps its state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.api.streams.building import located
from workbench.durations import Duration, parse_duration
from workbench.errors import PlanError, SettingError
from workbench.operators.changelogs.expiring import Expires
from workbench.origin import Origin
from workbench.plan.logical import Input


def with_ttl(end: Input, duration: Duration, origin: Origin | None) -> object:
    """The spec of the last operator with a time to live; see `Stream.state_ttl`."""
    spec: Any = end.node.spec
    with located(origin):
        us = parse_duration(duration, "state_ttl")
        if not us:
            raise SettingError("state_ttl is 0: it must be above zero; remove it to keep state forever")
        if end.tag is not None or not isinstance(spec, Expires):
            raise PlanError(
                f"{spec.kind} keeps no state for ever: state_ttl follows group_by(...).aggregate(...), distinct, "
                "top_n, latest_by, as_changelog, or a join without bounds"
            )
        return replace(spec, ttl_us=us)  # type: ignore[type-var]
