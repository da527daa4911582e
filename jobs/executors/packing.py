"""Which partitions are worth compacting: what Spark's OPTIMIZE would do, predicted from the log. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.formats.port import DataFile
from lakewarden.catalog.model.bucket_layout import BucketedFiles, BucketLayout
from lakewarden.jobs.actions.costs import WORTHWHILE
from lakewarden.jobs.runs.port import Partition

__all__ = ["MOST_PARTITIONS", "Packing", "is_small", "pack", "pack_buckets", "with_deletes"]

MOST_PARTITIONS: Final = 500
"""Partitions in one statement; the others wait for the next run. Those that shrink most come first."""

_DELETED_SHARE: Final = 0.05
"""Spark also rewrites files of which more than this share of the rows is deleted (optimize.maxDeletedRowsRatio)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """The partitions to rewrite, and how many files and bytes of them become how many files."""

    partitions: tuple[Partition, ...] = ()
    files: int = 0
    bytes: int = 0
    files_after: int = 0


def is_small(file: DataFile, target_bytes: int) -> bool:
    """Whether compaction to `target_bytes` would take this file: below half of it, or mostly worth its deletions."""
    if file.size_bytes < target_bytes // 2:
        return True
    if not file.has_deletion_vector:
        return False
    return not file.rows or file.deleted_rows / file.rows > _DELETED_SHARE


def pack(
    files: Iterable[DataFile],
    *,
    target_bytes: int,
    min_small_files: int,
    hot: AbstractSet[Partition] = frozenset(),
) -> Packing:
    """The partitions, none of them `hot`, whose small files are worth rewriting; nothing if those are fewer than
    `min_small_files` together."""
    small: dict[Partition, list[int]] = defaultdict(list)
    for file in files:
        if file.partition not in hot and is_small(file, target_bytes):
            small[file.partition].append(file.size_bytes)
    packed = [(partition, _bins(sizes, target_bytes)) for partition, sizes in small.items()]
    worthwhile = [one for one in packed if any(_is_worthwhile(bin_, target_bytes) for bin_ in one[1])]
    worthwhile.sort(key=lambda one: sum(1 - bin_.files for bin_ in one[1]))
    chosen = worthwhile[:MOST_PARTITIONS]
    bins = [bin_ for _, packed_bins in chosen for bin_ in packed_bins]
    count = sum(bin_.files for bin_ in bins)
    if count < min_small_files:
        return Packing()
    return Packing(
        partitions=tuple(partition for partition, _ in chosen),
        files=count,
        bytes=sum(bin_.bytes for bin_ in bins),
        files_after=len(bins),
    )


def pack_buckets(layout: BucketLayout, files: Iterable[DataFile], *, target_bytes: int) -> Packing:
    """The files of a bucketed table that are worth writing into their buckets. It has one partition."""
    found = BucketedFiles.of(layout, files, lambda one: one.path)
    chosen = found.to_join(lambda one: is_small(one, target_bytes))
    if not chosen:
        return Packing()
    buckets = {layout.bucket_of(one.path) for one in chosen} - {None}
    return Packing(
        partitions=(chosen[0].partition,),
        files=len(chosen),
        bytes=sum(one.size_bytes for one in chosen),
        files_after=layout.count if found.strays else len(buckets),
    )


def with_deletes(
    files: Iterable[DataFile], *, hot: AbstractSet[Partition] = frozenset()
) -> tuple[Partition, ...]:
    """The partitions, none of them `hot`, in which rows are deleted that are still in their files. Delete files of no
    partition concern all of them: they wait until none is hot."""
    found = {
        file.partition: None
        for file in files
        if (file.has_deletion_vector or file.deletes is not None) and file.partition not in hot
    }
    if hot:
        found.pop((), None)
    return tuple(found)[:MOST_PARTITIONS]


@dataclass(frozen=True, slots=True)
class _Bin:
    files: int
    bytes: int


def _bins(sizes: list[int], target_bytes: int) -> list[_Bin]:
    """How OPTIMIZE packs one partition, smallest first. A file that would be alone in its bin is left as it is
    (OptimizeExecutor.groupFilesIntoBins)."""
    bins: list[_Bin] = []
    files = total = 0
    for size in sorted(sizes):
        if files and total + size > target_bytes:
            bins.append(_Bin(files, total))
            files = total = 0
        files, total = files + 1, total + size
    bins.append(_Bin(files, total))
    return [one for one in bins if one.files > 1]


def _is_worthwhile(one: _Bin, target_bytes: int) -> bool:
    return one.files >= WORTHWHILE or one.bytes >= target_bytes // 2
