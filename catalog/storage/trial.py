"""Is a place on an object store fit for tables? Tried out there in a folder of its own, which is taken away again."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError, DeltaError

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.storage.file_store import StorageOptions, open_store
from lakewarden.catalog.storage.secret_files import current

__all__ = ["Trial", "try_out"]

_COLUMNS: Final = pa.schema([("id", pa.int64())])
_WRITERS: Final = 4
_ROUNDS: Final = 3
_NOTHING_AFTERWARDS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What came of a trial."""

    is_conditional: bool
    """Whether of several commits of one version all but one were refused."""
    skew: timedelta
    """How far the storage's clock is ahead of ours."""


def try_out(location: str, options: StorageOptions, clock: Clock) -> Trial:
    """Write, list, read and delete below a canonical location. Raises `UnavailableError` where one of that fails."""
    name = f".lakewarden-trial-{uuid.uuid4().hex}"
    store = open_store(location, options)
    try:
        store.write(f"{name}/clock", b"now")
        skew = _skew(store.stat(f"{name}/clock").modified_at, clock.now())
        return Trial(is_conditional=_refuses_a_second(f"{location}/{name}/table", options), skew=skew)
    except (DeltaError, OSError) as error:
        raise UnavailableError(
            f"{location} cannot be written.", hint="Check the credentials and what they allow."
        ) from error
    finally:
        for entry in tuple(store.list(name, recursive=True)):
            if not entry.is_dir:
                store.delete(entry.path)


def _refuses_a_second(place: str, options: StorageOptions) -> bool:
    """Writers that begin at once on one version: each but one has to be told that it came too late. A storage that
    knows no conditions tells several that they were first, if they come close enough together; hence the rounds."""
    given = current(options) or None
    DeltaTable.create(place, _COLUMNS, storage_options=given)
    with ThreadPoolExecutor(_WRITERS) as pool:
        for _ in range(_ROUNDS):
            handles = [DeltaTable(place, storage_options=given) for _ in range(_WRITERS)]
            together = threading.Barrier(_WRITERS)
            if sum(pool.map(lambda handle, start=together: _commits(handle, start), handles)) != 1:
                return False
    return True


def _commits(handle: DeltaTable, together: threading.Barrier) -> bool:
    together.wait()
    try:
        handle.create_write_transaction(
            [],
            mode="append",
            schema=handle.schema(),
            commit_properties=CommitProperties(max_commit_retries=0),
            post_commithook_properties=_NOTHING_AFTERWARDS,
        )
    except CommitFailedError:
        return False
    return True


def _skew(theirs: datetime, ours: datetime) -> timedelta:
    """Storages tell times in whole seconds."""
    return timedelta(seconds=round((theirs - ours).total_seconds() + 0.5))
