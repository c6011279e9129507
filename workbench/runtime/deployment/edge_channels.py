"""The channels of one attempt, by edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.operators.aggregates.local_aggregate import aggregates_locally
from workbench.plan.acking import is_of_acks, tracked
from workbench.plan.physical import Edge, PhysicalGraph
from workbench.runtime.exchange.buffer_bytes import BufferBytes
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.in_flight import Flow
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.execution import Slot

UNBOUNDED = 2**62
"""Buffers granted to ackers, whose messages to a source are few numbers for each of its pending roots."""


@dataclass(frozen=True, slots=True)
class EdgeChannels:
    """The channels of one edge, so that a task need not scan all pairs.

    Attributes:
        of, to: by sending and by receiving subtask.
    """

    of: list[list[Channel]]
    to: list[list[Channel]]


Channels = dict[str, EdgeChannels]
"""By edge."""


def channels_of(graph: PhysicalGraph, slots: Sequence[Slot], settings: Settings) -> tuple[Channel, ...]:
    """New channels for all edges of a graph."""
    found = new_channels(graph.edges, slots, settings)
    return tuple(channel for edge in graph.edges for own in found[edge.id].of for channel in own)


def new_channels(edges: Sequence[Edge], slots: Sequence[Slot], settings: Settings) -> Channels:
    """New channels for some of a graph's edges."""
    found: Channels = {}
    for edge in edges:
        source, target = edge.source, edge.target
        merges = edge.exchange == "hash" and aggregates_locally(target.nodes[0].spec)
        plain = settings.policy.acking is None or is_of_acks(edge)
        buffer_bytes = BufferBytes(
            edge.schema if plain else tracked(edge).schema, preaggregates=merges
        )  # even if none are created now, some may come from a checkpoint
        both = EdgeChannels([[] for _ in range(source.parallelism)], [[] for _ in range(target.parallelism)])
        for i, j in edge.pairs:
            channel = Channel(
                edge.id,
                f"{source.name}[{i}]",
                f"{target.name}[{j}]",
                UNBOUNDED if target.is_source else settings.buffers_per_channel,
                slots[source.slots[i]].waker,
                slots[target.slots[j]].waker,
                Flow(edge.producer_uid, edge.tag, target.name, edge.port, i, j, target.parallelism),
                buffer_bytes,
            )
            both.of[i].append(channel)
            both.to[j].append(channel)
        found[edge.id] = both
    return found
