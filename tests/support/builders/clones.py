"""Shallow clones without Spark."""

from pathlib import Path

from deltalake import DeltaTable

__all__ = ["shallow_clone"]


def shallow_clone(source: Path, target: Path, version: int | None = None) -> Path:
    """A table whose log names the source's files by absolute paths, as SHALLOW CLONE makes it."""
    table = DeltaTable(str(source), version=version)
    log = target / "_delta_log"
    log.mkdir(parents=True)
    first = (source / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    kept = [line for line in first if '"protocol"' in line or '"metaData"' in line]
    old_id = str(table.metadata().id)
    adds = [
        f'{{"add":{{"path":"{uri.removeprefix("file://")}","partitionValues":{{}},"size":'
        f'{Path(uri.removeprefix("file://")).stat().st_size},"modificationTime":1,"dataChange":true}}}}'
        for uri in table.file_uris()
    ]
    lines = [line.replace(old_id, "11111111-2222-3333-4444-555555555555") for line in kept]
    (log / f"{0:020d}.json").write_text("\n".join([*lines, *adds]) + "\n")
    return target
