"""Are head's files there and whole? Looks at every file's size, and into all or some of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from lakewarden.catalog.formats.port import DataFile, TableReader
from lakewarden.catalog.model.rows import Finding
from lakewarden.catalog.storage.file_store import (
    FileStore,
    StorageOptions,
    local_path,
    open_store,
    root_and_path,
)
from lakewarden.catalog.storage.troubles import trouble_at
from lakewarden.catalog.validation.context import Subject
from lakewarden.catalog.validation.parquet_contents import Content, ends_of, whole_of

__all__ = ["FilesReport", "files_findings", "look_at_files"]

CHECK: Final = "head_files"
ENDS_SAMPLE: Final = 10_000
"""Files whose both ends are read, spread evenly: all of a table up to this size."""
WHOLE_BYTES: Final = 8 * 1024 * 1024
"""How much of a table is read whole: all of a small one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FilesReport:
    """What a look at head's files came to: how many there are, and those that fail each way (sizes:
    found, expected)."""

    files: int = 0
    missing: tuple[str, ...] = ()
    wrong_size: tuple[tuple[str, int, int], ...] = ()
    not_parquet: tuple[str, ...] = ()
    other_rows: tuple[str, ...] = ()


def look_at_files(reader: TableReader, location: str, options: StorageOptions, *, files: int) -> FilesReport:
    """Look at every file of head; `files` is about how many there are. Raises `UnavailableError`, `UnreadableError`."""
    tally = _Tally(places=_Places(location, options), stride=max(1, files // ENDS_SAMPLE))
    try:
        for file in reader.files(location):
            tally.look_at(file)
    except OSError as error:
        raise trouble_at(location, error) from error
    return tally.report()


def files_findings(subject: Subject, report: FilesReport) -> tuple[Finding, ...]:
    """At most one finding with everything that is wrong with the files. Pure."""
    said = " ".join(finding.message for finding in _problems(subject, report))
    return (subject.finding(CHECK, said),) if said else ()


class _Places:
    """File sizes by path: asked one by one on local disks, from one listing of the table elsewhere."""

    def __init__(self, location: str, options: StorageOptions) -> None:
        self._location, self._options = location, options
        self._stores: dict[str, FileStore] = {}
        self._listed: dict[str, int] | None = None
        self._is_local = local_path(location) is not None

    def store(self, path: str) -> tuple[FileStore, str]:
        """The store a file is in, and its path there."""
        root, inner = root_and_path(self._location, path)
        if root not in self._stores:
            self._stores[root] = open_store(root, self._options)
        return self._stores[root], inner

    def size(self, path: str) -> int | None:
        """Bytes of a file; None if it is missing."""
        store, inner = self.store(path)
        if store.root == self._location and not self._is_local:
            if self._listed is None:
                entries = store.list("", recursive=True)
                self._listed = {entry.path: entry.size_bytes for entry in entries if not entry.is_dir}
            return self._listed.get(inner)
        try:
            return store.stat(inner).size_bytes
        except (FileNotFoundError, NotADirectoryError):
            return None


@dataclass(kw_only=True, slots=True)
class _Tally:
    places: _Places
    stride: int
    files: int = 0
    budget: int = WHOLE_BYTES
    missing: list[str] = field(default_factory=list)
    wrong_size: list[tuple[str, int, int]] = field(default_factory=list)
    contents: dict[Content, list[str]] = field(default_factory=dict)

    def look_at(self, file: DataFile) -> None:
        """Note what is wrong with one file."""
        self.files += 1
        found = self.places.size(file.path)
        if found is None:
            self.missing.append(file.path)
        elif found != file.size_bytes:
            self.wrong_size.append((file.path, found, file.size_bytes))
        elif file.is_parquet:
            content = self._content(file)
            if content is not Content.SOUND:
                self.contents.setdefault(content, []).append(file.path)
        if file.deletion_vector is not None and self.places.size(file.deletion_vector) is None:
            self.missing.append(file.deletion_vector)

    def report(self) -> FilesReport:
        """The tally as a value."""
        return FilesReport(
            files=self.files,
            missing=tuple(sorted(set(self.missing))),
            wrong_size=tuple(sorted(self.wrong_size)),
            not_parquet=tuple(sorted(self.contents.get(Content.NOT_PARQUET, ()))),
            other_rows=tuple(sorted(self.contents.get(Content.OTHER_ROWS, ()))),
        )

    def _content(self, file: DataFile) -> Content:
        store, path = self.places.store(file.path)
        if file.size_bytes <= self.budget:
            self.budget -= file.size_bytes
            return whole_of(store, path, file)
        return ends_of(store, path, file) if self.files % self.stride == 0 else Content.SOUND


def _problems(subject: Subject, report: FilesReport) -> Iterator[Finding]:
    for case, paths in (
        ("missing", report.missing),
        ("content", report.not_parquet),
        ("rows", report.other_rows),
    ):
        if paths:
            yield subject.say(CHECK, case, count=len(paths), files=report.files, path=paths[0])
    if report.wrong_size:
        path, found, expected = report.wrong_size[0]
        count = len(report.wrong_size)
        yield subject.say(
            CHECK, "size", count=count, files=report.files, path=path, found=found, expected=expected
        )
