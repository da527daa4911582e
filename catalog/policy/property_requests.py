"""Policy requests in table properties, recorded in the row. Pure.

`lakewarden.vacuum.retention = '9 days'` on a table asks for a policy; the row in `lakewarden.tables` is the truth. A
request counts once, when its text changes: what was recorded is kept in the row as `requested.<key>`. A RESTORE rewinds
properties without anybody asking for anything, so what it brings back is noted and not obeyed.
"""

from collections.abc import Mapping
from dataclasses import replace

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.policy.effective import property_requests, with_values
from lakewarden.catalog.policy.keys import POLICY_BY_KEY

__all__ = ["has_new_requests", "is_request", "record_requests"]

_NOTED = "requested."
_ASKED = "lakewarden."
_CLOSED = "access.closed"
_OPENED = (
    f"A table property closes a table to readers, and never opens it: {_CLOSED} = no is not taken from there. "
    "ALTER TABLE ... SET POLICY asks whose table it is."
)


def is_request(name: str) -> bool:
    """Whether a table property of this name asks for a policy, in whichever letters: engines differ in that."""
    told = name.lower()
    return told.startswith(_ASKED) and told.removeprefix(_ASKED) in POLICY_BY_KEY


def has_new_requests(row: TableRow, properties: Mapping[str, str]) -> bool:
    """Whether a table's properties ask for something that was not recorded yet."""
    return bool(_new(row, properties))


def record_requests(
    row: TableRow, properties: Mapping[str, str], *, rewound: bool
) -> tuple[TableRow, tuple[str, ...]]:
    """The row with new requests recorded, and a sentence for each that cannot be met.

    `rewound`: the table was restored since it was last looked at; then nothing counts as a request.
    """
    new = _new(row, properties)
    noted = replace(
        row, properties={**row.properties, **{f"{_NOTED}{key}": text for key, text in new.items()}}
    )
    if rewound or not new:
        return noted, ()
    values, problems = property_requests({f"{_ASKED}{key}": text for key, text in new.items()})
    for key, value in values.items():
        if key == _CLOSED and value is False:
            problems = (*problems, _OPENED)
            continue
        try:
            noted = replace(noted, policy=with_values(noted.policy, {key: value}, admin=False))
        except (NotAllowedError, UsageError) as error:
            problems = (*problems, str(error))
    return noted, problems


def _new(row: TableRow, properties: Mapping[str, str]) -> dict[str, str]:
    asked = {
        name.removeprefix(_ASKED): text
        for name, text in properties.items()
        if name.startswith(_ASKED) and name.removeprefix(_ASKED) in POLICY_BY_KEY
    }
    return {key: text for key, text in asked.items() if row.properties.get(f"{_NOTED}{key}") != text}
