"""``wb.pattern``: a pattern as a chain of stages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from workbench.arguments import as_given
from workbench.durations import Duration, format_duration, parse_duration
from workbench.errors import PlanError, unknown
from workbench.expressions import Expression
from workbench.origin import Origin, caller
from workbench.patterns.stages import NOTS, Contiguity, Stage, described, flat
from workbench.patterns.terms import TermError, parse_term

AfterMatch = Literal["nowhere", "next_row", "past_last", "to_first", "to_last"]
AFTER: tuple[AfterMatch, ...] = ("nowhere", "next_row", "past_last", "to_first", "to_last")

_TIMES_MAX = 1_000


@dataclass(frozen=True, eq=False)
class Pattern:
    """A pattern of rows, for `KeyedStream.match`; build it with `wb.pattern` and the methods.

    Each stage binds rows to its name. Methods about a stage, such as `times`, change the last one.

    Source: Flink's CEP, with its names in snake case.

    Attributes:
        stages: the stages, in order.
        within_us: the exclusive maximum duration of a match, in microseconds; 0: unlimited.
        after: which other matches a match suppresses; see `after_match`.
        after_stage: the stage to which `after` refers.
        origin: the user's line, for errors.

    Example:
        >>> theft = wb.pattern("small", "amount < 1").followed_by("large", "amount > 500").within("1min")
        >>> theft
        Pattern(small followed by large within 1min)
    """

    stages: tuple[Stage, ...]
    within_us: int = 0
    after: AfterMatch = "nowhere"
    after_stage: str = ""
    origin: Origin | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Pattern({self.text})"

    @property
    def text(self) -> str:
        """The pattern in words."""
        text = described(self.stages)
        if self.within_us:
            text += f" within {format_duration(self.within_us)}"
        if self.after != "nowhere":
            text += f", then {self.after.replace('_', ' ')} {self.after_stage}".rstrip()
        return text

    # stages -------------------------------------------------------------------------------------------------------

    def next(self, stage: str | Pattern, *conditions: str | Expression) -> Pattern:
        """Add a stage whose first row is the very next row of the key (strict contiguity).

        Args:
            stage: its name, or a pattern as a group.
            conditions: conditions on its rows; see `wb.pattern`.

        Raises:
            PlanError: the name is already used, or a condition cannot be parsed.
        """
        return self._then("next", stage, conditions)

    def followed_by(self, stage: str | Pattern, *conditions: str | Expression) -> Pattern:
        """Add a stage whose first row is the next one that fits; rows in between are skipped (relaxed contiguity).

        Args:
            stage: its name, or a pattern as a group.
            conditions: see `wb.pattern`.

        Raises:
            PlanError: see `next`.
        """
        return self._then("followed_by", stage, conditions)

    def followed_by_any(self, stage: str | Pattern, *conditions: str | Expression) -> Pattern:
        """Add a stage whose first row is any later row that fits: each one starts a separate match.

        Args:
            stage: its name, or a pattern as a group.
            conditions: see `wb.pattern`.

        Raises:
            PlanError: see `next`.
        """
        return self._then("followed_by_any", stage, conditions)

    def not_next(self, stage: str, *conditions: str | Expression) -> Pattern:
        """Require that the very next row does not satisfy the conditions.

        Args:
            stage: a name for it.
            conditions: see `wb.pattern`.

        Raises:
            PlanError: see `next`.
        """
        return self._then("not_next", stage, conditions)

    def not_followed_by(self, stage: str, *conditions: str | Expression) -> Pattern:
        """Require that no row satisfies the conditions before the first row of the next stage or, at the end of a
        pattern, before its time is over (`within`).

        Args:
            stage: a name for it.
            conditions: see `wb.pattern`.

        Raises:
            PlanError: see `next`.
        """
        return self._then("not_followed_by", stage, conditions)

    def _then(self, contiguity: Contiguity, stage: str | Pattern, conditions: tuple[str | Expression, ...]) -> Pattern:
        origin = caller()
        made = replace(_stage(stage, conditions, origin), contiguity=contiguity)
        if contiguity in NOTS and made.group:
            raise PlanError(f"{contiguity} takes one stage, not a group: name it", origin=origin)
        if contiguity in NOTS and self.stages[-1].optional:
            raise PlanError(
                f"{contiguity} cannot follow the optional stage {self.stages[-1]}, because its start is not defined "
                "without that stage: make the stage before it mandatory",
                origin=origin,
            )
        return replace(self, stages=(*self.stages, made))._checked(origin)

    def _checked(self, origin: Origin | None) -> Pattern:
        names = [stage.name for stage in flat(self.stages)]
        for name in names:
            if names.count(name) > 1:
                raise PlanError(f"two stages are named {name!r}: give each a different name", origin=origin)
        return self

    # the last stage -----------------------------------------------------------------------------------------------

    def where(self, *conditions: str | Expression) -> Pattern:
        """Add conditions to the last stage; all of them must be true.

        Args:
            conditions: see `wb.pattern`.

        Raises:
            PlanError: the last stage is a group, or a condition cannot be parsed.
        """
        origin = caller()
        last = self.stages[-1]
        if last.group:
            raise PlanError("a group has no conditions: add conditions to its stages", origin=origin)
        return self._last(conditions=(*last.conditions, *(_condition(one, origin) for one in conditions)))

    def times(self, least: int, most: int | None = None) -> Pattern:
        """Give the last stage exactly `least` rows, or any number from `least` to `most`.

        Args:
            least: at least 1.
            most: None: exactly `least`.

        Raises:
            PlanError: the numbers allow no row, or the stage already repeats.
        """
        origin = caller()
        most = least if most is None else most
        for number in (least, most):
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _TIMES_MAX:
                raise PlanError(f"times got {as_given(number)}: it takes whole numbers to {_TIMES_MAX}", origin=origin)
        if most < max(least, 1):
            raise PlanError(f"times({least}, {most}) allows no row: write the smaller number first", origin=origin)
        optional = {"optional": True} if not least else {}
        return self._repeated(origin, least=max(least, 1), most=most, **optional)

    def times_or_more(self, least: int) -> Pattern:
        """Give the last stage at least this many rows.

        Args:
            least: at least 1.

        Raises:
            PlanError: see `times`.
        """
        origin = caller()
        if not isinstance(least, int) or isinstance(least, bool) or not 1 <= least <= _TIMES_MAX:
            raise PlanError(f"times_or_more got {as_given(least)}: it takes 1 to {_TIMES_MAX}", origin=origin)
        return self._repeated(origin, least=least, most=None)

    def one_or_more(self) -> Pattern:
        """Give the last stage at least one row.

        Raises:
            PlanError: see `times`.
        """
        return self._repeated(caller(), least=1, most=None)

    def optional(self) -> Pattern:
        """Make the last stage optional.

        Raises:
            PlanError: it is a negative stage.
        """
        return self._changed(caller(), "optional", optional=True)

    def greedy(self) -> Pattern:
        """Bind every row that fits the last stage to it, not to the next stage.

        Raises:
            PlanError: the last stage is a group, or has at most one row.
        """
        origin = caller()
        last = self.stages[-1]
        if last.group:
            raise PlanError("greedy does not apply to a group: make its stages greedy", origin=origin)
        if not last.repeats and not last.optional:
            raise PlanError(f"greedy needs a stage that repeats: write {last}.one_or_more().greedy()", origin=origin)
        return self._changed(origin, "greedy", greedy=True)

    def consecutive(self) -> Pattern:
        """Require that the rows of the last stage follow each other directly.

        Raises:
            PlanError: it has one row at most.
        """
        return self._inner("consecutive", "next")

    def allow_combinations(self) -> Pattern:
        """Let the rows of the last stage be any rows that fit, not only the next ones.

        Raises:
            PlanError: it has one row at most.
        """
        return self._inner("allow_combinations", "followed_by_any")

    def until(self, condition: str | Expression) -> Pattern:
        """End the repetition of the last stage at a row that satisfies a condition; this row is not part of the stage.

        Args:
            condition: see `wb.pattern`. An aggregate over the stage includes the row itself: ``COUNT(a.*) > 3`` ends
                it after three rows.

        Raises:
            PlanError: the stage already has a maximum number of rows.
        """
        origin = caller()
        last = self.stages[-1]
        if last.most is not None:
            raise PlanError("until needs a stage without a maximum number of rows: use one_or_more()", origin=origin)
        return self._last(until=_condition(condition, origin))

    def _inner(self, method: str, how: Contiguity) -> Pattern:
        origin = caller()
        if not self.stages[-1].repeats:
            raise PlanError(f"{method} needs a stage that repeats: use times(...) or one_or_more()", origin=origin)
        return self._changed(origin, method, inner=how)

    def _repeated(self, origin: Origin | None, **changes: Any) -> Pattern:
        if self.stages[-1].repeats:
            raise PlanError(f"the stage {self.stages[-1]} already repeats: set the number of rows once", origin=origin)
        return self._changed(origin, "a repetition", **changes)

    def _changed(self, origin: Origin | None, what: str, **changes: Any) -> Pattern:
        if self.stages[-1].contiguity in NOTS and len(self.stages) > 1:
            raise PlanError(f"{what} does not apply to a negative stage: remove it", origin=origin)
        return self._last(**changes)

    def _last(self, **changes: Any) -> Pattern:
        return replace(self, stages=(*self.stages[:-1], replace(self.stages[-1], **changes)))

    # the whole pattern --------------------------------------------------------------------------------------------

    def within(self, duration: Duration) -> Pattern:
        """Limit the time from the first row of a match to its last to less than this duration.

        A partial match that is not complete by then goes to the side output ``"timed_out"``.

        Args:
            duration: such as ``"10min"``; if you set several, the shortest applies.

        Raises:
            SettingError: not a duration.
            PlanError: the duration is zero.
        """
        us = parse_duration(duration, "within")
        if us == 0:
            raise PlanError("within is 0, so no pattern can match: write for example '10min'", origin=caller())
        return replace(self, within_us=min(us, self.within_us or us))

    def after_match(self, after: AfterMatch, stage: str = "") -> Pattern:
        """Set which other matches a match suppresses: those that begin before a certain row.

        Args:
            after: the row from which other matches count. ``"nowhere"``: none is suppressed (the default);
            ``"next_row"``: the second row; ``"past_last"``: the row after the last one; ``"to_first"`` and
            ``"to_last"``: the first or last row of a stage.
            stage: the name of that stage.

        Raises:
            PlanError: the name is unknown.
        """
        origin = caller()
        if after not in AFTER:
            raise PlanError(unknown("place to continue after a match", after, AFTER), origin=origin)
        named = after in ("to_first", "to_last")
        names = [one.name for one in flat(self.stages)]
        if named and stage not in names:
            raise PlanError(unknown("stage", stage, names), origin=origin)
        if stage and not named:
            raise PlanError(f"{after!r} takes no stage: leave {stage!r} out", origin=origin)
        return replace(self, after=after, after_stage=stage)


def pattern(stage: str | Pattern, *conditions: str | Expression) -> Pattern:
    """Start a pattern with its first stage.

    Source: Flink's ``Pattern.begin``.

    Args:
        stage: its name, or a pattern as a group.
        conditions: conditions on its rows, as SQL text or built with `col`. Plain names are columns of the row;
            ``small.amount`` is the amount of the last row of the stage small, and ``FIRST``, ``LAST``, ``PREV``,
            ``NEXT`` and aggregates such as ``AVG(small.amount)`` work as in SQL's MATCH_RECOGNIZE. None: any row.

    Raises:
        PlanError: the name is not valid, or a condition cannot be parsed.

    Example:
        >>> rise = wb.pattern("low").next("up", "price > PREV(price)").one_or_more().consecutive()
        >>> times = pa.array([1, 2, 3, 4], pa.timestamp("s"))
        >>> table = pa.table({"t": times, "ticker": ["X"] * 4, "price": [5, 4, 6, 7]})
        >>> prices = wb.Stream.from_table(table, event_time="t")
        >>> rises = prices.key_by("ticker").match(rise.after_match("past_last"), low="low.price", high="LAST(up.price)")
        >>> rises.collect().to_pylist()
        [{'ticker': 'X', 'low': 4, 'high': 6}]
    """
    origin = caller()
    return Pattern((_stage(stage, conditions, origin),), origin=origin)._checked(origin)


def _stage(stage: str | Pattern, conditions: tuple[str | Expression, ...], origin: Origin | None) -> Stage:
    if isinstance(stage, Pattern):
        if conditions:
            raise PlanError("a group has no conditions: add conditions to its stages", origin=origin)
        if stage.within_us or stage.after != "nowhere":
            raise PlanError(
                "within and after_match apply to the whole pattern: remove them from the group", origin=origin
            )
        if stage.stages[-1].contiguity == "not_followed_by" and len(stage.stages) > 1:
            raise PlanError("a group cannot end with not_followed_by: add another stage after it", origin=origin)
        return Stage("", group=stage.stages)
    if not isinstance(stage, str) or not stage.isidentifier():
        raise PlanError(f"the name of a stage is {as_given(stage)}: write a name such as 'small'", origin=origin)
    return Stage(stage, tuple(_condition(one, origin) for one in conditions))


def _condition(value: str | Expression, origin: Origin | None) -> Expression:
    if isinstance(value, Expression):
        return value
    if not isinstance(value, str):
        raise PlanError(f"a condition is {as_given(value)}: write SQL such as 'price > 10'", origin=origin)
    try:
        return Expression(parse_term(value))
    except TermError as error:
        raise PlanError(f"condition {error.message}", origin=origin) from None
