"""What Spark does by itself that is no governed write: refused where it would change a managed table unrecorded."""

from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.formats.registry import carries_retention, moves_head
from lakewarden.jobs.session.judgement.plan_tables import PlanTables
from lakewarden.jobs.session.judgement.said import called, kind_said
from lakewarden.jobs.session.judgement.statement_kinds import StatementKind
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.writes import Directory

__all__ = ["UnrecordedRule"]

_LOOKS: Final = frozenset({StatementKind.QUERY, StatementKind.SHOWS})
_REMOVING: Final = {
    "AlterTableRenameCommand": "RENAME",
    "AlterTableSetLocationCommand": "SET LOCATION",
    "AlterTableSetLocationDeltaCommand": "SET LOCATION",
    "DropTable": "DROP TABLE",
    "DropTableCommand": "DROP TABLE",
    "RenameTable": "RENAME",
    "SetTableLocation": "SET LOCATION",
}
"""Statements that take a table from its place, by the class of the analysed plan."""
_SYSTEM_DATABASE: Final = "lakewarden"
_MAIN: Final = "main"
_REFERENCES: Final = {
    "CreateOrReplaceBranch": "CREATE OR REPLACE BRANCH",
    "CreateOrReplaceTag": "CREATE OR REPLACE TAG",
    "DropBranch": "DROP BRANCH",
    "DropTag": "DROP TAG",
}
"""Statements about what keeps a version, by the class of the plan."""


@dataclass(frozen=True, kw_only=True)
class UnrecordedRule:
    """The rule for one Spark application and one installation."""

    plans: Plans
    tables: PlanTables
    directory: Directory

    def require_readable(self, session: Any, plan: JavaPlan) -> None:
        """Raise `NotAllowedError` for a parsed statement of an unknown class, and for one that runs a text that may
        write."""
        match kind_said(self.plans, plan):
            case StatementKind.UNKNOWN | StatementKind.INTERNAL:
                raise NotAllowedError(
                    f"lakewarden does not know what Spark's {kind(plan)} changes. Nothing was run.",
                    hint="A session of your own runs it without lakewarden.",
                )
            case StatementKind.DYNAMIC if not self._only_looks(session, plan):
                raise NotAllowedError(
                    f"{called(self.plans, plan)} is not run where it may write: what it writes is seen "
                    "too late. Nothing was run.",
                    hint="Write its statements one by one. EXECUTE IMMEDIATE takes a text, without USING "
                    "and INTO.",
                )
            case StatementKind.UNRECORDED if kind(plan) == "Call":
                self._require_harmless_call(session, plan)
            case StatementKind.SHOWS if kind(plan) == "ExplainCommand":
                self.require_readable(session, plan.logicalPlan())  # Spark would run it to explain it

    def require_harmless(self, session: Any, plan: JavaPlan, analysed: JavaPlan) -> None:
        """Raise `NotAllowedError` for an analysed statement that changes rows or files of a managed table, or a system
        table, or what a legal hold keeps."""
        kind_ = kind_said(self.plans, plan)
        if kind_ in _LOOKS:
            return
        if kind(analysed) == "DropNamespace" and self._name(analysed.namespace()) == _SYSTEM_DATABASE:
            raise NotAllowedError(
                "The database of the system tables is not dropped.", hint="It is the daemon's."
            )
        if kind(analysed) == "DropNamespace" and analysed.cascade():
            self._require_removable_tables(session, analysed.namespace())
        for one in sorted(self.tables.about(session, analysed), key=lambda one: one.location):
            self.directory.require_writable(one.location)
            if kind_ is not StatementKind.DEFINES:
                self.directory.require_unmanaged(one.location, called(self.plans, plan), one.format_id)
            elif (moving := self._moving(analysed)) is not None:
                self.directory.require_unmanaged(one.location, moving, one.format_id)
            elif (removing := self._removing(analysed)) is not None:
                self.directory.require_removable(removing, location=one.location, format_id=one.format_id)
            elif (forgetting := self._forgetting(analysed)) is not None:
                self.directory.require_no_hold(forgetting, one.location, one.format_id)

    def _require_harmless_call(self, session: Any, plan: JavaPlan) -> None:
        """Raise `NotAllowedError` for a call of a procedure of Iceberg's that names a managed table, or whose arguments
        are no plain values: Spark runs it as soon as it analyses it."""
        for one in self.tables.called(session, plan):
            if one is None:
                raise NotAllowedError(
                    "CALL takes plain values here: which table is meant would be seen too late. Nothing was run."
                )
            self.directory.require_writable(one.location)
            self.directory.require_unmanaged(one.location, "CALL", one.format_id)

    def _require_removable_tables(self, session: Any, namespace: JavaPlan) -> None:
        """Raise `NotAllowedError` if one of the tables that are in a namespace may not be removed, whatever it is
        managed as."""
        called_ = "DROP DATABASE"
        self.directory.require_removable(called_, database=self._name(namespace))
        for one in self.tables.inside(session, namespace):
            self.directory.require_removable(called_, location=one.location, format_id=one.format_id)

    def _moving(self, analysed: JavaPlan) -> str | None:
        """What a statement is called by which a table has other rows, although it is none that writes; None for any
        other."""
        name = kind(analysed)
        if name == "CreateOrReplaceBranch" and analysed.replace() and str(analysed.branch()) == _MAIN:
            return f"{_REFERENCES[name]} {_MAIN}"
        return next((f"a change of {key}" for key in self._properties(analysed) if moves_head(key)), None)

    def _removing(self, analysed: JavaPlan) -> str | None:
        """What a statement is called that takes a table from its place; None for any other. Iceberg's catalog obeys a
        property of that name, in letters that Spark's parser takes for another."""
        told = _REMOVING.get(kind(analysed))
        moves = any(key.lower() == "location" for key in self._properties(analysed))
        return _REMOVING["SetTableLocation"] if moves else told

    def _forgetting(self, analysed: JavaPlan) -> str | None:
        """What a statement is called by which earlier versions may sooner be deleted; None for any other."""
        name = kind(analysed)
        if name == "AlterTableDropFeature":
            return "DROP FEATURE"
        if name in _REFERENCES and (name.startswith("Drop") or analysed.replace()):
            return _REFERENCES[name]
        return next(
            (f"a change of {key}" for key in self._properties(analysed) if carries_retention(key)), None
        )

    def _properties(self, analysed: JavaPlan) -> list[str]:
        """The properties of a table that a statement sets, or takes away."""
        match kind(analysed):
            case "SetTableProperties" | "AlterTableSetPropertiesCommand":
                return list(self.plans.texts(analysed.properties()))
            case "UnsetTableProperties":
                return [str(key) for key in self.plans.sequence(analysed.propertyKeys())]
            case "AlterTableUnsetPropertiesCommand":
                return [str(key) for key in self.plans.sequence(analysed.propKeys())]
            case _:
                return []

    def _only_looks(self, session: Any, plan: JavaPlan) -> bool:
        if kind(plan) != "UnresolvedExecuteImmediate":
            return all(self._looks(session, one) for one in self.tables.within(plan))
        text = plan.sqlStmtStr()
        is_plain = kind(text) == "Literal" and text.value() is not None
        return is_plain and self._looks(session, self.plans.parsed(session, str(text.value())))

    def _looks(self, session: Any, plan: JavaPlan) -> bool:
        self.require_readable(session, plan)
        return kind_said(self.plans, plan) in _LOOKS

    def _name(self, namespace: JavaPlan) -> str:
        return ".".join(map(str, self.plans.sequence(namespace.namespace()))).lower()
