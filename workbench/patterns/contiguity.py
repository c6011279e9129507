"""Translates stages with contiguity to an automaton that finds every match.

Source: Flink's CEP; J. Agrawal et al., *Efficient Pattern Matching over Event Streams* (SIGMOD 2008).

During construction, a state also has transitions that take no row (*proceed*): past an optional stage, or out of a
loop. They are resolved at the end. After a greedy stage, a row that fits that stage is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from workbench.errors import PlanError
from workbench.patterns.automaton import IGNORE, RIPE, STOP, TAKE, Automaton, Edge, assembled
from workbench.patterns.guards import ALWAYS, NEVER, Guard, both, either, opposite, when
from workbench.patterns.stages import Contiguity, Stage

_FINAL = -1
_STATES_MAX = 20_000
_Kind = Literal["take", "ignore", "proceed", "stop", "ripe"]
_Nots = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    kind: _Kind
    guard: Guard
    to: int
    variable: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """The surroundings of the stages under construction: the end of their groups.

    Attributes:
        then: the state after them, given the conditions that exclude a row there.
        until: the conditions that must be false for a row that is taken or skipped.
    """

    then: Callable[[_Nots], int]
    until: Guard = field(default_factory=list)


def stage_automaton(stages: tuple[Stage, ...], variables: Sequence[str], conditions: Mapping[str, int]) -> Automaton:
    """The automaton of a chain of stages.

    Args:
        stages: at least one.
        variables: their names, by index.
        conditions: the bit of the condition of each stage, by its name, and of `until`, by `Stage.until_name`; other
            stages accept any row.

    Raises:
        PlanError: there are too many states.
    """
    return _Builder(variables, conditions).whole(stages)


class _Builder:
    def __init__(self, variables: Sequence[str], conditions: Mapping[str, int]) -> None:
        self._variables = list(variables)
        self._conditions = conditions
        self._states: list[list[_Way]] = []

    def whole(self, stages: tuple[Stage, ...]) -> Automaton:
        start = self._enter(stages, 0, (), _Place(lambda nots: self._end(stages, nots)), None)
        numbers, finished, waiting = {start: 0}, {}, [start]
        while waiting:
            state = waiting.pop()
            edges = []
            for edge in self._edges(state):
                if edge.to not in (_FINAL, state) and edge.to not in numbers:
                    numbers[edge.to] = len(numbers)
                    waiting.append(edge.to)
                edges.append(edge)
            finished[numbers[state]] = edges
        end = len(numbers)  # a state without edges
        numbers[_FINAL] = end
        finished[end] = []
        ordered = [[replace(edge, to=numbers[edge.to]) for edge in finished[number]] for number in range(end + 1)]
        return assembled(self._variables, ordered, False)

    # states -------------------------------------------------------------------------------------------------------

    def _new(self, ways: Iterable[_Way] = ()) -> int:
        if len(self._states) >= _STATES_MAX:
            raise PlanError(f"the pattern has more than {_STATES_MAX:,} states: repeat less by numbers")
        self._states.append([*ways])
        return len(self._states) - 1

    def _add(self, state: int, kind: _Kind, guard: Guard, to: int, variable: int = 0) -> None:
        self._states[state].append(_Way(kind, guard, to, variable))

    def _stop(self, state: int, nots: _Nots) -> None:
        for bit in nots:
            self._add(state, "stop", when(bit), state)

    def _end(self, stages: tuple[Stage, ...], nots: _Nots) -> int:
        """The end of the pattern; after NOT FOLLOWED BY, the time has to pass first."""
        if stages[-1].contiguity != "not_followed_by" or len(stages) == 1:
            return _FINAL
        state = self._new()
        self._stop(state, nots)
        self._add(state, "ignore", ALWAYS, state)
        self._add(state, "ripe", ALWAYS, state)
        return state

    def _unfit(self, state: int, condition: Guard) -> int:
        """The state after a greedy stage: a row that still fits the stage is ignored."""
        if state == _FINAL:
            return state
        copy = self._new()
        for way in self._states[state]:
            to = copy if way.to == state else way.to
            self._add(copy, way.kind, both(way.guard, opposite(condition)), to, way.variable)
        return copy

    def _left_out(self, stage: Stage, how: Contiguity, place: _Place) -> Guard | None:
        if how == "next":
            return None
        own = when(self._conditions.get(stage.name))
        return both(ALWAYS if how == "followed_by_any" else opposite(own), opposite(place.until))

    # stages -------------------------------------------------------------------------------------------------------

    def _enter(
        self,
        stages: tuple[Stage, ...],
        at: int,
        nots: _Nots,
        place: _Place,
        how: Contiguity | None,
        split: bool = False,
    ) -> int:
        """The state that waits for the stage at `at`.

        Args:
            stages: a chain.
            at: the index of the stage.
            nots: the conditions of rows that stop the wait.
            place: what surrounds the chain.
            how: how its first row follows; None: the stage's own contiguity.
            split: whether a skipped row leads to a separate state, because the first one can be left.
        """
        if at == len(stages):
            return place.then(nots)
        stage = stages[at]
        if stage.contiguity == "not_followed_by" and at:
            return self._enter(stages, at + 1, (*nots, self._conditions.get(stage.name)), place, None)
        if stage.contiguity == "not_next" and at:
            return self._not_next(stages, at, place)
        then = self._enter(stages, at + 1, (), place, None)
        skipped = self._enter(stages, at + 1, nots, place, None) if stage.optional else None
        behind = stages[at + 1] if at + 1 < len(stages) else None
        excluded: _Nots = ()
        if behind is not None and behind.contiguity == "not_followed_by":
            excluded = (self._conditions.get(behind.name),)
        return self._repeated(stage, how or stage.contiguity, nots, excluded, then, skipped, place, split)

    def _not_next(self, stages: tuple[Stage, ...], at: int, place: _Place) -> int:
        condition = when(self._conditions.get(stages[at].name))
        then = self._enter(stages, at + 1, (), place, None)
        state = self._new()
        self._add(state, "stop", condition, state)
        self._add(state, "ignore" if then == _FINAL else "proceed", opposite(condition), then)
        return state

    def _repeated(
        self,
        stage: Stage,
        how: Contiguity,
        nots: _Nots,
        excluded: _Nots,
        then: int,
        skipped: int | None,
        place: _Place,
        split: bool,
    ) -> int:
        until = NEVER if stage.until is None else when(self._conditions[stage.until_name])
        inside = replace(place, until=either(place.until, until))
        exits = {then: [(ALWAYS, then)]}
        if skipped is not None:
            exits[skipped] = [(ALWAYS, skipped)]
        if (stage.greedy and stage.least != stage.most) or (stage.greedy and stage.optional):
            condition = when(self._conditions.get(stage.name))
            for state in exits:
                exits[state] = [(until, state), (opposite(until), self._unfit(state, condition))]
        target = exits[then][-1][1]
        if stage.most is None:
            target = self._loop(stage, exits[then], excluded, inside, place)
        else:
            for _ in range(stage.most - stage.least):
                target = self._single(stage, stage.inner, excluded, target, exits[then], inside, inside, False)
        for _ in range(stage.least - 1):
            target = self._single(stage, stage.inner, excluded, target, [], inside, inside, False)
        # A row that is skipped before the first one never ends the loop.
        skips = [] if skipped is None else exits[skipped]
        return self._single(stage, how, nots, target, skips, inside, place, split or skipped is not None)

    def _single(
        self,
        stage: Stage,
        how: Contiguity,
        nots: _Nots,
        then: int,
        skips: Sequence[tuple[Guard, int]],
        inside: _Place,
        outside: _Place,
        split: bool,
    ) -> int:
        """The state that waits for one row of a stage, or for one pass through a group.

        Args:
            stage: the stage.
            how: how the row follows.
            nots: see ``_enter``.
            then: the state after the row.
            skips: the conditions for leaving the stage without a row, and the next state.
            inside, outside: the surroundings of the row, and of the rows that are skipped before it.
            split: see ``_enter``.
        """
        split = split or (bool(skips) and not stage.group)
        if stage.group:
            inner = replace(inside, then=lambda nots: then)
            state = self._enter(stage.group, 0, nots, inner, how, split)
        else:
            state = self._new()
            taken = both(when(self._conditions.get(stage.name)), opposite(inside.until))
            variable = self._variables.index(stage.name)
            self._add(state, "take", taken, then, variable)
            self._stop(state, nots)
            left_out = self._left_out(stage, how, outside)
            if left_out is not None:
                waiting = state
                if split:
                    waiting = self._new()
                    self._add(waiting, "take", taken, then, variable)
                    self._add(waiting, "ignore", left_out, waiting)
                    self._stop(waiting, nots)
                self._add(state, "ignore", left_out, waiting)
        for guard, to in skips:
            self._add(state, "proceed", both(guard, opposite(outside.until)), to)
        return state

    def _loop(
        self, stage: Stage, exits: Sequence[tuple[Guard, int]], excluded: _Nots, inside: _Place, outside: _Place
    ) -> int:
        """The state after the required rows of a stage that has no upper bound."""
        if stage.group:
            state = self._new()
            inner = replace(inside, then=lambda nots: state)
            again = self._enter(stage.group, 0, (), inner, stage.inner)
            self._add(state, "proceed", ALWAYS, again)
            for guard, to in exits:
                self._add(again, "proceed", both(guard, opposite(outside.until)), to)
            return state
        state = self._new()
        for guard, to in exits:
            self._add(state, "proceed", guard, to)
        taken = both(when(self._conditions.get(stage.name)), opposite(inside.until))
        variable = self._variables.index(stage.name)
        self._add(state, "take", taken, state, variable)
        self._stop(state, excluded)
        left_out = self._left_out(stage, stage.inner, inside)
        if left_out is not None:
            waiting = self._new()
            self._add(waiting, "take", taken, state, variable)
            self._add(waiting, "ignore", left_out, waiting)
            self._add(state, "ignore", left_out, waiting)
            self._stop(waiting, excluded)
        return state

    # edges --------------------------------------------------------------------------------------------------------

    def _edges(self, start: int) -> list[Edge]:
        edges: list[Edge] = []

        def walk(state: int, guard: Guard, seen: tuple[int, ...]) -> None:
            for way in self._states[state]:
                fits = both(guard, way.guard)
                if way.kind == "proceed":
                    if way.to not in (_FINAL, *seen) and fits:
                        walk(way.to, fits, (*seen, way.to))
                elif way.kind == "stop":
                    edges.extend(Edge(STOP, start, *cube) for cube in fits)
                elif way.kind == "ripe":
                    edges.append(Edge(RIPE, start))
                else:
                    kind = TAKE if way.kind == "take" else IGNORE
                    done = self._accepts(way.to, ()) if kind == TAKE or way.to == _FINAL else NEVER
                    for accepts, part in ((True, done), (False, opposite(done))):
                        edges.extend(Edge(kind, way.to, *cube, way.variable, accepts) for cube in both(fits, part))

        walk(start, ALWAYS, (start,))
        return edges

    def _accepts(self, state: int, seen: tuple[int, ...]) -> Guard:
        """The conditions under which a match that arrives here with the same row is complete."""
        if state == _FINAL:
            return ALWAYS
        if state in seen:
            return NEVER
        guard = NEVER
        for way in self._states[state]:
            if way.kind == "proceed":
                guard = either(guard, both(way.guard, self._accepts(way.to, (*seen, state))))
        return guard
