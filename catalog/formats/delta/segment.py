"""Which files of the log make up a version, and whether any are missing. Pure: a listing in, a segment out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakewarden.catalog.formats.delta.errors import EXISTS, HISTORY, LOG_CONTIGUOUS, BrokenLogError
from lakewarden.catalog.formats.delta.log_names import HINT, Kind, parse_name
from lakewarden.catalog.formats.port import LogProblem
from lakewarden.catalog.storage.file_store import FileEntry

__all__ = ["Checkpoint", "LogListing", "Segment", "listing_of", "segment_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A complete checkpoint."""

    version: int
    files: tuple[FileEntry, ...]
    """One file, or all its parts in order."""
    is_v2: bool = False
    """Whether the checkpoint is named by the V2 scheme."""

    @property
    def written_at(self) -> datetime:
        """When its last file was written."""
        return max(entry.modified_at for entry in self.files)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogListing:
    """The log folder's files by what they are."""

    commits: Mapping[int, FileEntry] = field(default_factory=dict)
    checkpoints: tuple[Checkpoint, ...] = ()
    """Complete ones, newest first."""
    checksums: Mapping[int, FileEntry] = field(default_factory=dict)
    incomplete: tuple[int, ...] = ()
    """Versions whose checkpoint lacks parts."""
    companions: frozenset[str] = frozenset()
    """What is not part of the protocol, checksum files of Hadoop among it."""
    hint: FileEntry | None = None
    """`_last_checkpoint`."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to rebuild any version from."""
        return not self.commits and not self.checkpoints

    @property
    def latest(self) -> int:
        """The highest version that a commit or checkpoint is there of."""
        return max((*self.commits, *(one.version for one in self.checkpoints)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """What rebuilds one version."""

    head: int
    """The version."""
    checkpoint: Checkpoint | None
    """Where to begin; None: at the first commit."""
    commits: tuple[tuple[int, FileEntry], ...]
    """The commits after the checkpoint, in order."""
    older: tuple[tuple[int, FileEntry], ...] = ()
    """Commits up to the checkpoint that are still there without a gap, in order."""
    first_version: int = 0
    """The lowest version that can still be rebuilt."""
    warnings: tuple[LogProblem, ...] = ()
    """What is wrong with the rest of the log."""


def listing_of(entries: Iterable[FileEntry]) -> LogListing:
    """Sort the log folder's entries by what they are."""
    commits: dict[int, FileEntry] = {}
    checksums: dict[int, FileEntry] = {}
    whole: dict[int, Checkpoint] = {}
    parts: dict[tuple[int, int], dict[int, FileEntry]] = {}
    companions: set[str] = set()
    hint: FileEntry | None = None
    for entry in entries:
        name = parse_name(entry.path.rsplit("/", 1)[-1])
        if entry.path == HINT and not entry.is_dir:
            hint = entry
        elif name is None or entry.is_dir:
            companions.add(entry.path)
        elif name.kind is Kind.COMMIT:
            commits[name.version] = entry
        elif name.kind is Kind.CHECKSUM:
            checksums[name.version] = entry
        elif name.kind is Kind.CHECKPOINT_PART:
            parts.setdefault((name.version, name.parts), {})[name.part] = entry
        elif name.kind is Kind.CHECKPOINT or (name.kind is Kind.CHECKPOINT_V2 and name.version not in whole):
            is_v2 = name.kind is Kind.CHECKPOINT_V2
            whole[name.version] = Checkpoint(version=name.version, files=(entry,), is_v2=is_v2)
    incomplete: set[int] = set()
    for (version, count), found in parts.items():
        if len(found) == count:
            files = tuple(found[part] for part in sorted(found))
            whole.setdefault(version, Checkpoint(version=version, files=files))
        else:
            incomplete.add(version)
    return LogListing(
        commits=commits,
        checkpoints=tuple(sorted(whole.values(), key=lambda one: -one.version)),
        checksums=checksums,
        incomplete=tuple(sorted(incomplete - whole.keys())),
        companions=frozenset(companions),
        hint=hint,
    )


def segment_of(listing: LogListing, *, location: str, upto: int | None = None) -> Segment:
    """The files that rebuild version `upto` (head when None).

    Raises `BrokenLogError` when there is no log, or commits that are needed are missing.
    """
    if listing.is_empty:
        raise BrokenLogError(EXISTS, f"There is no Delta log at {location}.")
    known = listing.latest
    head = known if upto is None else upto
    if head > known:
        raise BrokenLogError(LOG_CONTIGUOUS, f"The log ends at version {known}; there is no version {head}.")
    if upto is None:
        _refuse_lost_head(listing, known)
    checkpoint = next((one for one in listing.checkpoints if one.version <= head), None)
    start = checkpoint.version + 1 if checkpoint else 0
    missing = next((version for version in range(start, head + 1) if version not in listing.commits), None)
    if missing is not None:
        raise BrokenLogError(LOG_CONTIGUOUS, _missing(listing, checkpoint, missing))
    older = _unbroken_below(listing, start)
    return Segment(
        head=head,
        checkpoint=checkpoint,
        commits=tuple((version, listing.commits[version]) for version in range(start, head + 1)),
        older=tuple((version, listing.commits[version]) for version in older),
        first_version=_first_version(listing, older.start, head),
        warnings=tuple(_warnings(listing, older.start)),
    )


def _refuse_lost_head(listing: LogListing, known: int) -> None:
    """A version's checksum is written after its commit: one without the other means that the commit was taken away."""
    last = max(listing.checksums, default=known)
    if last > known:
        message = (
            f"The log ends at version {known}, yet the checksum file of version {last} is there: "
            "commits are lost."
        )
        raise BrokenLogError(LOG_CONTIGUOUS, message)


def _missing(listing: LogListing, checkpoint: Checkpoint | None, missing: int) -> str:
    later = min(version for version in listing.commits if version > missing) if listing.commits else None
    if checkpoint is None and later is not None and later == min(listing.commits):
        reason = (
            f"the checkpoint of version {listing.incomplete[-1]} is incomplete"
            if listing.incomplete
            else "there is no usable checkpoint"
        )
        return f"The log begins at version {later} and {reason}: no version can be rebuilt."
    return f"The commit of version {missing} is missing from the log, later ones are there."


def _unbroken_below(listing: LogListing, start: int) -> range:
    first = start
    while first - 1 in listing.commits:
        first -= 1
    return range(first, start)


def _first_version(listing: LogListing, oldest: int, head: int) -> int:
    """Every version from the answer to head can be rebuilt; `oldest` is the first commit of the unbroken run."""
    if oldest == 0:
        return 0
    versions = [one.version for one in listing.checkpoints if oldest - 1 <= one.version <= head]
    return min(versions, default=head)


def _warnings(listing: LogListing, oldest: int) -> Iterable[LogProblem]:
    stranded = [version for version in listing.commits if version < oldest]
    if stranded:
        message = (
            f"The commit of version {oldest - 1} is missing although those up to version {max(stranded)} are "
            "there: versions before the next checkpoint cannot be rebuilt."
        )
        yield LogProblem(check=HISTORY, message=message)
    for version in listing.incomplete:
        message = f"The checkpoint of version {version} lacks some of its parts; readers pass it over."
        yield LogProblem(check=HISTORY, message=message)
