"""Attacks jobs between real servers, run by run."""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Sequence

from .arena import Arena
from .attack import Outcome
from .judge import KINDS
from .plans import runs


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if nothing was found."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="how many runs (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run (default: 1)")
    parser.add_argument("--only", action="append", default=[], help="runs with this server, source or sink")
    parser.add_argument("--go-on", action="store_true", help="run all, whatever is found")
    chosen = parser.parse_args(arguments)
    logging.getLogger("paho").addHandler(logging.NullHandler())  # it reports every connection that ends
    outcomes: list[Outcome] = []
    with Arena() as arena:
        for plan in runs(chosen.runs, chosen.seed, chosen.only):
            tell(f"{len(outcomes) + 1}/{chosen.runs} {plan}")
            for fault in plan.faults:
                tell(f"    {fault}")
            outcome = arena.run(plan)
            outcomes.append(outcome)
            for text in outcome.refused:
                tell(f"    {text[:300]}")
            tell(f"    {outcome.seconds:.1f} s: {outcome.findings or 'fine'}")
            if not outcome.fine:
                tell(f'    again: make chaos RUNS=1 ARGS="--seed {plan.seed}"')
                if not chosen.go_on:
                    break
    tell(summary(outcomes))
    return int(not all(outcome.fine for outcome in outcomes))


def summary(outcomes: Sequence[Outcome]) -> str:
    """The figures of all runs."""
    happened: Counter[str] = sum((outcome.happened for outcome in outcomes), Counter())
    verdicts = [verdict for outcome in outcomes for _, verdict in outcome.verdicts]
    wrong: Counter[str] = sum((verdict.wrong for verdict in verdicts), Counter())
    figures = [f"{len(outcomes)} runs", *(f"{happened[name]} {name}" for name in sorted(happened))]
    refused = sum(len(outcome.refused) for outcome in outcomes)
    checked = sum(verdict.rows for verdict in verdicts)
    return "\n".join(
        (
            ", ".join(figures) + f", {refused} orders refused",
            f"{checked:,} rows checked: " + ", ".join(f"{wrong[kind]} {kind}" for kind in KINDS),
            f"as promised: {sum(each.repeated for each in verdicts):,} repeated (at least once), "
            f"{sum(each.missed for each in verdicts):,} missed (at most once)",
            *(f"seed {each.plan.seed}: {each.findings}" for each in outcomes if not each.fine),
        )
    )


def tell(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
