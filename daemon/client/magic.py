"""`%%lakewarden` in IPython and Jupyter: a cell of SQL, for the notebook's own session or for a gateway."""

import os
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa
from IPython.core.error import UsageError as CellError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.daemon.client.address import address_of
from lakewarden.daemon.client.connection import connect
from lakewarden.daemon.client.reopening import Reopening
from lakewarden.daemon.client.script import split

__all__ = ["LakewardenMagics", "load"]

_SCHEMES: Final = ("hive+http://", "hive+https://")
_SESSION: Final = "lw"
_HINT: Final = (
    "`lw = lakewarden.attach(spark)`, or `%lakewarden hive+https://user@host:port/database` for a gateway."
)


@magics_class
class LakewardenMagics(Magics):
    """What the extension adds to a shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._variables = shell.user_ns
        self._gateway: Reopening | None = None

    @no_var_expand  # what looks like a variable of Python's in SQL is none
    @line_cell_magic
    def lakewarden(self, line: str, cell: str | None = None) -> Any:
        """`%lakewarden URL` connects to a gateway, `%lakewarden SELECT ...` runs a statement, `%%lakewarden` a cell.

        The result is the last statement's: a Spark DataFrame of the session in the variable `lw` (or the one that is
        named behind `%%lakewarden`), or what a gateway sent, for pandas. The first statement that fails is the last.
        """
        try:
            if cell is None and line.startswith(_SCHEMES):
                self._connect(line.strip())
                return None
            statements = list(split(line if cell is None else cell))
            if not statements:
                raise UsageError("There is no statement.", hint="Try: SELECT * FROM lakewarden.tables")
            named = "" if cell is None else line.strip()
            if self._gateway is not None and not named:
                return [_sent(self._gateway, one) for one in statements][-1]
            session = self._session(named)
            return [session.sql(one) for one in statements][-1]
        except LakewardenError as error:
            raise CellError(f"{error} {error.hint}".strip()) from error

    def _connect(self, url: str) -> None:
        if address_of(url).token is not None:
            raise UsageError(
                "A notebook keeps what is written in it, and this address has a token.",
                hint="Set LAKEWARDEN_TOKEN before the notebook's kernel starts, and leave it out here.",
            )
        address = address_of(url, os.environ.get("LAKEWARDEN_TOKEN"))
        self._gateway = Reopening(lambda: connect(address))

    def _session(self, named: str) -> Any:
        name = named or _SESSION
        session = self._variables.get(name)
        if not callable(getattr(session, "sql", None)):
            raise UsageError(f"There is no attached session in the variable {name}.", hint=_HINT)
        return session


def _sent(gateway: Reopening, statement: str) -> Any:
    result = gateway.execute(statement)
    if not result.columns:
        return None
    columns = [[row[number] for row in result.rows] for number, _ in enumerate(result.columns)]
    table = pa.Table.from_arrays([pa.array(column) for column in columns], names=list(result.columns))
    return table.to_pandas() if find_spec("pandas") else table


def load(shell: InteractiveShell) -> None:
    """Add the magic to a shell."""
    shell.register_magics(LakewardenMagics(shell))
