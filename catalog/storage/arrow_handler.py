"""delta-rs's storages as a file system of Arrow's."""

from typing import Any

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler

__all__ = ["ArrowHandler"]


class _BytesOnly:
    """Arrow writes buffers since version 22, the store behind takes bytes."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self.close = sink.close
        self.flush = sink.flush

    @property
    def closed(self) -> bool:
        return bool(self._sink.closed)

    def write(self, data: pa.Buffer | bytes) -> int:
        return int(self._sink.write(bytes(data)))


class ArrowHandler(DeltaStorageHandler):
    """delta-rs's handler, whose output streams also take Arrow's buffers."""

    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
        return pa.PythonFile(_BytesOnly(self._handler.open_output_stream(path, metadata)), mode="w")
