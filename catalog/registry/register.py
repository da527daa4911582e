"""Register one table: a batch of one, whose refusal is raised."""

from dataclasses import replace

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.model.rows import Source
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.registry.batch import register_batch
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.registry.service import Registered, Registry

__all__ = ["register"]


def register(
    registry: Registry,
    where: str,
    *,
    actor: Actor,
    name: str | None = None,
    owner: str | None = None,
    copy: bool = False,
    moved: bool = False,
    source: Source = Source.REGISTER,
) -> Registered:
    """Manage the table at a path or metastore name, observing only until a policy asks for more.

    Repeating it looks at the table again and changes nothing; a table whose UUID is known and whose old place is gone
    has moved and keeps its row. Where the old place cannot be seen at all (its disk may be away),
    a move is followed only if `moved` says so. Once the row is written the table is managed: where its health cannot be
    recorded, that is said (`unrecorded`), not raised.
    Raises `RefusedError` for what cannot be a row: nothing there, no table, nested in or around a managed table, a
    second live location with a known UUID unless `copy`; a new one that is said to have `moved`; a managed one whose
    name or owner is not the one given.
    """
    wanted = WantedTable(where=where, name=name, owner=owner, copy=copy, moved=moved, is_known=moved)
    (came,) = register_batch(registry, [wanted], actor=actor, source=source, again=True)
    if isinstance(came, LakewardenError):
        raise came
    return replace(came, row=registry.resolve(came.row.location or ""))
