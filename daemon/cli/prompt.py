"""`lakewarden sql --url` at a terminal: statements typed one after the other, with a history and completion."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from lakewarden.catalog.errors import LakewardenError
from lakewarden.daemon.cli.format import tell_error
from lakewarden.daemon.cli.output import Format, note
from lakewarden.daemon.cli.remote_sql import printed
from lakewarden.daemon.client.address import Address
from lakewarden.daemon.client.connection import connect
from lakewarden.daemon.client.execution import Cancelled
from lakewarden.daemon.client.reopening import Reopening
from lakewarden.daemon.client.script import is_whole, split

__all__ = ["WORDS", "SqlCompleter", "history_file", "prompt"]

WORDS: Final = (
    "ALTER TABLE", "AND", "AS", "AT TIMESTAMP", "AT VERSION", "BETWEEN", "BY", "CASCADE", "CASE",
    "CONVERT TO DELTA", "CONVERT TO ICEBERG", "CREATE TABLE", "DELETE FROM", "DESCRIBE MANAGED", "DESCRIBE TABLE",
    "DISTINCT", "DROP TABLE", "EXPLAIN GOVERNED", "FROM", "GROUP BY", "HAVING", "IN", "INSERT INTO", "IS NOT NULL",
    "JOIN", "LEFT JOIN", "LIKE", "LIMIT", "MARK TABLE", "MERGE INTO", "NOT", "NULL", "ON", "OR", "ORDER BY",
    "ROLLBACK TABLE", "SELECT", "SET", "SET lakewarden.dialect =", "SET lakewarden.matches =", "SET POLICY",
    "SHOW LINEAGE", "SHOW MANAGED TABLES", "SHOW ROLLBACKS", "SHOW RUNS", "SHOW TABLES", "THEN", "UNION ALL",
    "UPDATE", "UPSERT INTO", "USE", "USING", "VACUUM", "VACUUM AUTO RUN", "VALUES", "WHEN", "WHERE", "WITH",
)  # fmt: skip
"""What a statement may go on with, besides names."""
_LEAVING: Final = frozenset({"exit", "quit", "\\q"})
_NAMES: Final = "SELECT name FROM lakewarden.tables WHERE state <> 'dropped'"
"""Answered by the gateway without Spark."""
_OWNER_ALONE: Final = 0o600


def prompt(address: Address, format: Format) -> None:
    """Read and run statements until the end of input, or `exit`. What fails is told, and the next one may come."""
    with closing(Reopening(lambda: connect(address))) as gateway:
        names = Names(lambda: [str(row[0]) for row in gateway.look(_NAMES).rows])
        session: PromptSession[str] = PromptSession(
            history=FileHistory(str(history_file(os.environ))),
            completer=SqlCompleter(names),
            complete_while_typing=False,
            multiline=True,
            prompt_continuation="        ... ",
            key_bindings=_keys(),
        )
        while True:
            try:
                text = session.prompt("lakewarden> ")
            except KeyboardInterrupt:
                continue  # the line is given up, not the session
            except EOFError:
                return
            if text.strip().rstrip(";").lower() in _LEAVING:
                return
            _run(gateway, text, format)
            names.forget()


def _run(gateway: Reopening, text: str, format: Format) -> None:
    """The statements of a text; the first that fails is its last."""
    try:
        for statement in split(text):
            begin = time.monotonic()
            result = gateway.execute(statement)
            printed(result, format)
            rows = f"{len(result.rows):,} rows, " if result.columns else ""
            note(f"{rows}{time.monotonic() - begin:.2f} s")
    except Cancelled as outcome:
        note(str(outcome))
    except KeyboardInterrupt:
        note("Nobody waits for it any more.")
    except LakewardenError as error:
        tell_error(error)


class Names:
    """The names of managed tables, asked for when they are wanted and kept until they may have changed."""

    def __init__(self, ask: Callable[[], Sequence[str]]) -> None:
        self._ask, self._known = ask, list[str]()

    def __call__(self) -> Sequence[str]:
        if not self._known:
            try:
                self._known = sorted(self._ask())
            except LakewardenError:
                return ()  # no completion is worth an error in the middle of a line
        return self._known

    def forget(self) -> None:
        """A statement was run: ask anew."""
        self._known = []


class SqlCompleter(Completer):
    """Completes the word before the cursor by words of SQL, in the case they are typed in, and names of tables."""

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
        """What begins like the word, names first."""
        typed = document.get_word_before_cursor(WORD=True).rpartition("(")[2].rpartition(",")[2]
        if not typed:
            return
        lowers = typed.islower()
        words = (word.lower() if lowers else word for word in WORDS)
        for one in (*self._names(), *words):
            if one.lower().startswith(typed.lower()) and one != typed:
                yield Completion(one, start_position=-len(typed))


def history_file(environment: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/lakewarden/sql_history`, or below `~/.local/state`. Made for its owner alone."""
    base = environment.get("XDG_STATE_HOME")
    folder = (Path(base) if base else Path.home() / ".local" / "state") / "lakewarden"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sql_history"
    path.touch(mode=_OWNER_ALONE)
    path.chmod(_OWNER_ALONE)  # of a file that was there
    return path


def _keys() -> KeyBindings:
    """Enter sends what a semicolon ends, and begins a new line in anything else."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text.strip()
        if not text or text.lower() in _LEAVING or is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys
