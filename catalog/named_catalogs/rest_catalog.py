"""A catalog that speaks Iceberg's REST protocol (`/v1/config`, `/v1/{prefix}/namespaces/.../tables/...`)."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final
from urllib.parse import quote, urlencode

from lakewarden.catalog.errors import CatalogAwayError, ConflictError, EntryAwayError, RefusedError
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration
from lakewarden.catalog.named_catalogs.port import CatalogEntries
from lakewarden.catalog.named_catalogs.rest_session import RestAnswer, RestSession, SlowAnswerError
from lakewarden.catalog.storage.named_files import lies_in
from lakewarden.catalog.storage.place import Moment

__all__ = ["RestCatalog"]

_Listed = tuple[tuple[str, ...], str]
"""A table as a server lists it: its namespace's parts, and its name. Each may have dots."""
_GONE: Final = frozenset({"NoSuchTableException", "NoSuchNamespaceException"})
"""What a server says of what is not there. Any other 404 may be a proxy's, or a wrong address."""
_DONE: Final = (200, 202, 204)
_NEEDED: Final = frozenset(
    {"POST /v1/{prefix}/tables/rename", "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}"}
)
"""What a server that lists its endpoints has to have among them for a purge."""
_LEVELS: Final = "\x1f"
"""Between the parts of a namespace in an address."""
_PAGES: Final = 100_000
"""So many pages of a list are read at most: a server that never ends is broken."""


class RestCatalog:
    """`TableCatalog` of a server. Asks for each table by itself: the protocol knows no other question. What a server
    says has not changed (ETag) it does not send again."""

    bulk: Final = False

    def __init__(self, declared: CatalogDeclaration) -> None:
        self._declared = declared
        self._seen: dict[_Listed, tuple[str, str]] = {}
        self._prefix: str | None = None
        self._token: str | None = None
        self._lock = threading.Lock()

    def metadata_files(self, namespace: str, tables: Sequence[str]) -> Mapping[str, str]:
        with self._session() as session:
            parts = tuple(namespace.split("."))
            found = ((table, self._file(session, parts, table)) for table in tables)
            return {table: file for table, file in found if file is not None}

    def naming(self, location: str) -> tuple[str, ...]:
        return ()

    def naming_in(self, namespace: str | None, location: str) -> tuple[str, ...]:
        with self._session() as session:
            if namespace is None:
                listed, untold = self._all(session)
                if untold is not None:
                    raise untold
            else:
                listed = dict.fromkeys(self._tables(session, tuple(namespace.split("."))))
            now, files = Moment(), {one: self._file(session, *one) for one in listed}
            self._require_gone(session, [one for one, file in files.items() if file is None])
            return tuple(
                f"{self._declared.name}.{_spelled(one)}"
                for one, file in files.items()
                if file is not None and lies_in(file, location, now)
            )

    def entries(self) -> CatalogEntries:
        with self._session() as session:
            listed, untold = self._all(session)
        return CatalogEntries(
            files=dict.fromkeys(".".join((*space, name)) for space, name in listed), untold=untold
        )

    def _all(self, session: RestSession) -> tuple[dict[_Listed, None], EntryAwayError | None]:
        """The tables of all namespaces, and why those of some are not among them."""
        found: dict[_Listed, None] = {}
        untold: EntryAwayError | None = None
        left = list(self._inside(session, ()))
        while left:
            namespace = left.pop()
            try:
                found |= dict.fromkeys(self._tables(session, namespace))
            except EntryAwayError as error:
                untold = error
            try:
                left += list(self._inside(session, namespace))
            except EntryAwayError as error:
                untold = error
        return found, untold

    def _require_gone(self, session: RestSession, absent: Sequence[_Listed]) -> None:
        """Raise `EntryAwayError` where the server still lists a table that it has just said is not there."""
        for namespace in dict.fromkeys(space for space, _ in absent):
            listed = frozenset(self._tables(session, namespace))
            for one in absent:
                if one in listed:
                    raise self._odd(f"lists {_spelled(one)} and says that it is not there", EntryAwayError)

    @property
    def takes_entries(self) -> bool:
        with self._session() as session:
            told = self._configuration(session).get("endpoints")
        return not isinstance(told, list) or _NEEDED.issubset(told)

    def take_away(self, namespace: str, table: str, *, name: str, file: str) -> None:
        with self._session() as session:
            self._require_named(session, namespace, table, file)
            self._rename(session, namespace, table, name)
            try:  # no request of the protocol compares and renames: what came before it is the table's
                self._require_named(session, namespace, name, file)
            except ConflictError:
                self._rename(session, namespace, name, table)
                raise

    def put_back(self, namespace: str, name: str, *, table: str, file: str) -> None:
        with self._session() as session:
            self._rename(session, namespace, name, table)

    def drop(self, namespace: str, table: str) -> None:
        path = f"{_place(namespace.split('.'))}/tables/{quote(table, safe='')}?purgeRequested=false"
        with self._session() as session:
            answer = session.send("DELETE", f"v1/{self._prefixed(session)}{path}")
        if answer.status not in _DONE and not (answer.status == 404 and answer.error in _GONE):
            raise self._odd(f"{_answers(answer)} when told to drop {namespace}.{table}", EntryAwayError)

    def _require_named(self, session: RestSession, namespace: str, table: str, file: str) -> None:
        if self._file(session, tuple(namespace.split(".")), table) != file:
            raise ConflictError(
                f"The entry {namespace}.{table} of the catalog {self._declared.name} does not name {file} any more."
            )

    def _rename(self, session: RestSession, namespace: str, table: str, name: str) -> None:
        parts = namespace.split(".")
        told = {
            "source": {"namespace": parts, "name": table},
            "destination": {"namespace": parts, "name": name},
        }
        answer = session.send("POST", f"v1/{self._prefixed(session)}tables/rename", told)
        if answer.status in _DONE:
            return
        if answer.status == 404 and answer.error in _GONE:
            raise ConflictError(
                f"The catalog {self._declared.name} has no entry {namespace}.{table} any more."
            )
        if answer.status == 409:
            raise ConflictError(
                f"The catalog {self._declared.name} has another table {namespace}.{name} by now."
            )
        if answer.status == 406 or answer.error == "UnsupportedOperationException":
            raise RefusedError(
                f"The catalog {self._declared.name} does not rename tables.",
                hint="Delete the table by its own engine: DROP TABLE ... PURGE.",
            )
        raise self._odd(f"{_answers(answer)} when told to rename {namespace}.{table}", EntryAwayError)

    def _file(self, session: RestSession, namespace: tuple[str, ...], table: str) -> str | None:
        key = (namespace, table)
        with self._lock:
            known = self._seen.get(key)
        path = f"{_place(namespace)}/tables/{quote(table, safe='')}?snapshots=refs"
        headers = {} if known is None else {"If-None-Match": known[0]}
        of = _spelled(key)
        answer = self._get(session, path, headers, of=of)
        if answer is None:
            return None
        if answer.status == 304 and known is not None:
            return known[1]
        file = answer.body.get("metadata-location")
        if not isinstance(file, str):
            raise self._odd(f"names no metadata file of {of}", EntryAwayError)
        if answer.etag is not None:
            with self._lock:
                self._seen[key] = (answer.etag, file)
        return file

    def _tables(self, session: RestSession, namespace: tuple[str, ...]) -> Iterator[_Listed]:
        for one in self._listed(
            session, f"{_place(namespace)}/tables", "identifiers", of=f"the tables of {'.'.join(namespace)}"
        ):
            yield tuple(one["namespace"]), one["name"]

    def _inside(self, session: RestSession, parent: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        query = f"?{urlencode({'parent': _LEVELS.join(parent)})}" if parent else ""
        of = f"the namespaces in {'.'.join(parent)}" if parent else "its namespaces"
        for one in self._listed(session, f"namespaces{query}", "namespaces", of=of):
            inner = tuple(one)
            if len(inner) > len(parent):
                yield inner

    def _listed(self, session: RestSession, path: str, key: str, *, of: str) -> Iterator[Any]:
        """All pages of a list; nothing of what is gone."""
        token = ""
        for _ in range(_PAGES):
            more = urlencode({"pageToken": token}) if token else ""
            answer = self._get(session, f"{path}{'&' if '?' in path else '?'}{more}" if more else path, of=of)
            if answer is None:
                return
            yield from answer.body.get(key) or ()
            token = answer.body.get("next-page-token") or ""
            if not token:
                return

    def _get(
        self, session: RestSession, path: str, headers: Mapping[str, str] | None = None, *, of: str
    ) -> RestAnswer | None:
        """The answer of what is asked for, None where the server says that there is no such thing. Raises
        `EntryAwayError` where the server answers other questions, and not this one."""
        prefix = self._prefixed(session)
        for _ in range(2):
            used = session.token
            try:
                answer = session.get(f"v1/{prefix}{path}", headers)
            except SlowAnswerError:
                why = "does not answer in time"
            else:
                if answer.status == 404 and answer.error in _GONE:
                    return None
                if answer.status in (200, 304):
                    return answer
                why = _answers(answer)
            self._configuration(session)
            if session.token == used:
                break  # it is not that the token had expired
        raise self._odd(f"{why} when asked for {of}", EntryAwayError)

    def _prefixed(self, session: RestSession) -> str:
        """What stands before each path, as the server's configuration says."""
        if self._prefix is None:
            told = self._configuration(session)
            said = {**(told.get("defaults") or {}), **(told.get("overrides") or {})}
            self._prefix = f"{quote(str(said['prefix']), safe='/')}/" if said.get("prefix") else ""
        return self._prefix

    def _configuration(self, session: RestSession) -> Mapping[str, Any]:
        """What the server tells to everybody with a token. Raises `CatalogAwayError`: then it tells nothing else."""
        wanted = self._declared.warehouse
        query = "" if wanted is None else f"?{urlencode({'warehouse': wanted})}"
        answer = session.get(f"v1/config{query}", of_all=True)
        if answer.status != 200:
            raise self._odd(f"answers {answer.status} when asked for its configuration")
        return answer.body

    @contextmanager
    def _session(self) -> Iterator[RestSession]:
        with closing(RestSession(self._declared, self._token)) as session:
            try:
                yield session
            finally:
                self._token = session.token

    def _odd(self, what: str, kind: type[CatalogAwayError] = CatalogAwayError) -> CatalogAwayError:
        name = self._declared.name
        return kind(
            f"The catalog {name} {what}.",
            hint=f"Check catalogs.{name}.uri, warehouse and what the token allows.",
        )


def _answers(answer: RestAnswer) -> str:
    return f"answers {answer.status} ({answer.error or 'without a reason'})"


def _spelled(listed: _Listed) -> str:
    """`namespace.table`; what has a dot itself, in backquotes: it is no other table's name."""
    return ".".join(f"`{one}`" if "." in one else one for one in (*listed[0], listed[1]))


def _place(namespace: Sequence[str]) -> str:
    return f"namespaces/{quote(_LEVELS.join(namespace), safe='')}"
