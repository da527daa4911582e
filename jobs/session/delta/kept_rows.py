"""Options of a write that say by a condition which rows of a table it replaces: SQL in a text, which is in no plan.

Delta runs it as a DELETE in a session of its own, where nobody would see what a query in it reads.
"""

from collections.abc import Iterator
from typing import Any, Final

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["options_of_write", "require_plain_conditions"]

_CONDITIONS: Final = frozenset({"replacewhere", "replaceon"})
_INTO: Final = frozenset(
    {
        "AppendData",
        "DeltaDynamicPartitionOverwriteCommand",
        "OverwriteByExpression",
        "OverwritePartitionsDynamic",
    }
)
_MADE: Final = frozenset({"CreateTableAsSelect", "ReplaceTableAsSelect"})


def require_plain_conditions(plans: Plans, session: Any, plan: JavaPlan) -> None:
    """Raise `UsageError` for an analysed write one of whose conditions asks a query; Spark's own error for a condition
    that is none."""
    for option, text in options_of_write(plans, plan):
        if option.lower().removeprefix("option.") not in _CONDITIONS:
            continue
        with plans.active(session):
            condition = session.sessionState().sqlParser().parseExpression(text)
        if plans.asks(condition):
            raise UsageError(
                f"{option} takes no query: what it reads would be on no record. Nothing was run.",
                hint="Write the values into the condition, or say by a MERGE which rows are replaced.",
            )


def options_of_write(plans: Plans, plan: JavaPlan) -> Iterator[tuple[str, str]]:
    """What an analysed write is told by options, its table's (INSERT INTO t WITH ...) and its own."""
    name = kind(plan)
    if name in _INTO:
        given = plan.table().options()
        yield from () if given.isEmpty() else dict(given).items()
        yield from plans.texts(plan.writeOptions()).items()
    elif name in _MADE:
        spec = plan.tableSpec()
        for told in (plan.writeOptions(), spec.options(), spec.properties()):
            yield from plans.texts(told).items()
