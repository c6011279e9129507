"""``workbench slots``: lists the replication slots of a PostgreSQL database, and drops those of jobs that are over."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.cli.command import Parser, say
from workbench.packages import needed

if TYPE_CHECKING:
    from workbench.connectors.postgresql_log.server import SlotFacts

DETAILS = """\
Lists the replication slots of a PostgreSQL database from which wb.PostgresLogSource reads: who reads each (the job and
the table, as far as the user may see them), how far the reader has confirmed the log, how much of its log the server
keeps for it, and its state. A slot that nobody reads holds the log until the disk is full: if its job is over, drop it.

A slot whose name ends with '_at_' and a number belongs to a savepoint of that checkpoint, which needs it as long as the
savepoint exists.

Other programs that use the plug-in pgoutput, such as subscriptions of other servers, have slots in the list, too. A job
whose slot was dropped cannot go on from its checkpoints.

The URL is postgresql://[user[:password]@]host[:port]/database. Write '${NAME}' in it, in single quotes, for a password
in an environment variable: other users of the machine can read the words of a command.
"""
_HEADS = ("slot", "active", "reader", "confirmed", "keeps", "state")


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench slots``."""
    parser.does(run, DETAILS)
    parser.add_argument("url", metavar="URL", help="the database")
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="NAME",
        help="drop this slot, which must not be active; repeatable. Nothing is dropped if one of the names is refused",
    )


def run(options: argparse.Namespace) -> int:
    """List the slots, or drop some; returns the exit code.

    Raises:
        SettingError: not such a URL, there is no such slot, or it is active.
        SourceError: the server cannot be asked, or refuses.
        MissingPackageError: the package psycopg is not installed.
    """
    slots = needed("workbench.connectors.postgresql_log.slots", "'workbench slots'")
    if options.drop:
        for name in slots.drop_slots(options.url, options.drop):
            say(f"Dropped the slot {name!r}.")
        return 0
    found = slots.slots_of(options.url)
    if not found:
        say("There are no slots of the plug-in pgoutput in this database.")
        return 0
    for line in table(found):
        say(line)
    return 0


def table(slots: Sequence[SlotFacts]) -> list[str]:
    """The lines of a table of slots."""
    rows = [_HEADS, *(_cells(slot) for slot in slots)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cells(slot: SlotFacts) -> tuple[str, ...]:
    from workbench.connectors.postgresql_log.positions import lsn_text  # imports Arrow, which the help does not need

    state = slot.status
    if slot.safe_bytes is not None and state != "lost":
        state += f", lost after {max(slot.safe_bytes, 0) / 1e6:,.1f} MB more"
    return (
        *(slot.name, "yes" if slot.active_pid else "no", slot.reader or "-", lsn_text(slot.confirmed)),
        *(f"{slot.retained_bytes / 1e6:,.1f} MB", state),
    )
