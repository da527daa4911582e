"""What Delta's own log says about a commit of ours, read without Spark: is a version still head, and still the commit
that was decided on, what did a run do."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.delta.log_names import commit_path
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.lineage_record import RUN_ID
from lakewarden.catalog.storage.file_store import FileStore, StorageOptions

__all__ = ["OurCommit", "commits_of", "number_of", "require_head", "was_restored"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OurCommit:
    """A commit that carries a run id of ours: what it did, in its own words."""

    version: int
    operation: str
    metrics: Mapping[str, str] = field(default_factory=dict)

    def count(self, metric: str) -> int:
        """A metric that counts files or bytes; 0 where the commit has none of that name."""
        return int(self.metrics.get(metric, 0))


def require_head(store: FileStore, version: int) -> None:
    """Raise `ConflictError` unless `version` is head."""
    if store.exists(commit_path(version + 1)):
        raise ConflictError(f"The table moved past version {version}, on which this was decided.")


def number_of(location: str, storage: Callable[[str], StorageOptions], requires: Head) -> int:
    """The number of the version to commit on. Raises `ConflictError` if it is another commit's by now."""
    if requires.token is not None:
        reader = DeltaReader(storage)
        told = reader.has_head(location, version=requires.version, head=requires.token)
        if told is False:
            raise ConflictError(
                f"Version {requires} of {location} is another commit than the one that this was decided on; "
                "nothing was changed."
            )
    return requires.version


def commits_of(store: FileStore, run_id: str, *, after: int) -> Iterator[OurCommit]:
    """The commits after version `after` that carry this run id, in order."""
    version = after + 1
    while True:
        try:
            lines = store.read(commit_path(version)).splitlines()
        except FileNotFoundError:
            return
        info = _commit_info(lines)
        if _run_id(info) == run_id:
            metrics = {key: str(value) for key, value in (info.get("operationMetrics") or {}).items()}
            yield OurCommit(version=version, operation=info.get("operation", ""), metrics=metrics)
        version += 1


def was_restored(store: FileStore, *, after: int, upto: int) -> bool:
    """Whether one of the commits after version `after` and up to `upto` is a RESTORE."""
    infos = (_commit_info(store.read(commit_path(one)).splitlines()) for one in range(after + 1, upto + 1))
    return any(info.get("operation") == "RESTORE" for info in infos)


def _commit_info(lines: list[bytes]) -> Mapping[str, Any]:
    for line in lines:
        if b'"commitInfo"' in line:
            info = json.loads(line).get("commitInfo")
            if isinstance(info, dict):
                return info
    return {}


def _run_id(info: Mapping[str, Any]) -> str | None:
    """Our run id, as delta-rs (a key of its own) or Spark (inside userMetadata) writes it."""
    direct = info.get(RUN_ID)
    if direct is not None:
        return str(direct)
    try:
        return str(json.loads(info.get("userMetadata") or "")["lakewarden"]["run_id"])
    except (ValueError, KeyError, TypeError):
        return None  # somebody else's words
