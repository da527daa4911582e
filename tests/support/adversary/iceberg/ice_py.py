"""Somebody who writes by pyiceberg, where that is installed: it is no part of what the tests need."""

import importlib
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from support.adversary.iceberg.ice_book import IceTable
from support.adversary.iceberg.ice_catalog import CATALOG, NAMESPACE, Pointers
from support.adversary.stranger import Stranger

__all__ = ["is_installed", "written_by_pyiceberg"]


def is_installed() -> bool:
    return find_spec("pyiceberg") is not None


def written_by_pyiceberg(
    table: IceTable, pointers: Pointers, stranger: Stranger, y: int, now: datetime
) -> str:
    """One commit, or what it said instead."""
    found = _catalog(pointers.url).load_table(f"{NAMESPACE}.{table.entry}")
    rows = table.contents.get(table.head, ())
    data = stranger.rows()
    empty = [pa.nulls(data.num_rows, pa.int64()) for _ in found.schema().fields[1:]]
    whole = pa.table(
        [data["id"], *empty],
        schema=pa.schema([pa.field(one.name, pa.int64()) for one in found.schema().fields]),
    )
    what = ("append", "overwrite", "delete", "expire", "property", "tag")[y % 6]
    try:
        match what:
            case "append":
                found.append(whole)
            case "overwrite":
                found.overwrite(whole)
            case "delete" if rows:
                found.delete(f"id = {rows[y // 6 % len(rows)]}")
            case "expire":
                ends = set(table.lasting(table.view, now).values()) if table.view else set()
                line = table.view.line(table.view.main) if table.view else ()
                stay = ends | {one.id for one in line}
                for shot in (one.snapshot_id for one in found.snapshots() if one.snapshot_id not in stay):
                    found.maintenance.expire_snapshots().by_id(shot).commit()
                    found.refresh()
            case "property":
                with found.transaction() as change:
                    change.set_properties({"owner": str(y)})
            case "tag" if rows and f"p{y}" not in (table.view.refs if table.view else ()):
                found.manage_snapshots().create_tag(found.current_snapshot().snapshot_id, f"p{y}").commit()
    except (ValueError, _refusal()) as refused:
        return f"pyiceberg {what}: {refused}"
    return f"pyiceberg {what}"


def _refusal() -> type[Exception]:
    refused: type[Exception] = importlib.import_module("pyiceberg.exceptions").CommitFailedException
    return refused


@cache
def _catalog(url: str) -> Any:
    return importlib.import_module("pyiceberg.catalog.sql").SqlCatalog(CATALOG, uri=url)
