"""docs/reference/security.md: what is promised of a gateway, and which test holds it."""

from collections.abc import Iterator, Mapping
from typing import Final

from support.reference.meanings import NOTICE, cell
from support.security.attacks import ATTACKS, Attack, Role
from support.security.iceberg_attacks import BY_NAME, ICEBERG_ATTACKS

__all__ = ["PROMISES", "security_page"]

_INTRO: Final = """\
# What is promised, and which test holds it

`python -m pytest tests/security` tries each statement below as each role at a gateway with TLS and tokens,
in a minute or two. Whoever looks for a hole adds a line to `tests/support/security/attacks.py`, or to
`iceberg_attacks.py` beside it: this page and the tests are made from them.

* **none**: somebody with a token who is neither in `gateway.readers` nor in `gateway.writers`
* **reader**: in `gateway.readers`; **owner**: a reader who owns `shop.own` and the closed table `shop.closed`
* **writer**: in `gateway.writers`, with `gateway.writers_may = sql`
* **admin**: an admin of the installation

"""
_STATEMENTS: Final = """\
## Statements

yes: it is let through. no: it is refused, and nothing of it has happened. Empty: not tried. What a statement
names in braces is a path. Each is a test of `tests/security/test_attacks.py`, `NAME, by ROLE`.

"""
_OF_ICEBERG: Final = f"""
## Statements about Iceberg tables

The {len(BY_NAME)} of the statements above that are about tables are tried on Iceberg tables, too, by their names in the
metastore and by those of a catalog, and are let through or refused alike. Only Iceberg has:

"""
_OTHERS: Final = """
## Around them

| what is promised | test |
|---|---|
"""
PROMISES: Final[Mapping[str, Mapping[str, str]]] = {
    "unit/daemon/gateway/test_failed_logins.py": {
        "test_who_is_at_work_is_not_locked_out_by_a_stranger_with_the_same_address": (
            "A stranger behind the same proxy locks nobody out who is at work."
        ),
        "test_a_flood_of_names_is_no_flood_of_lines_figures_or_memory": (
            "A flood of names is no flood of lines, figures or memory."
        ),
    },
    "unit/daemon/gateway/test_refusals.py": {
        "test_a_flood_is_one_commit_now_and_one_later": "A flood of refusals is no flood of commits.",
        "test_nobody_reads_in_it_what_a_statement_held": (
            "The audit holds no literals of refused statements, and nothing that they set."
        ),
    },
    "security/test_attacks.py": {
        "test_a_refused_login_is_a_line_and_a_figure_without_the_secret": (
            "A refused login is a line and a figure with user, address and reason, and without the secret."
        ),
        "test_after_too_many_failed_logins_no_more_of_theirs_are_looked_at": (
            "After too many failed logins of a user from an address no more of theirs are looked at; "
            "others notice nothing."
        ),
        "test_refused_statements_are_in_the_audit": (
            "Refused reads and statements are in `lakewarden.audit`."
        ),
        "test_no_attack_has_left_anything": "What was refused has changed nothing.",
    },
    "integration/test_gateway_users.py": {
        "test_a_user_with_a_token_is_let_in_until_it_is_revoked": (
            "A revoked token is refused from the next call on."
        ),
        "test_a_session_is_its_users_alone": "A session and its statements are its user's alone.",
    },
    "unit/daemon/installation/test_tokens.py": {
        "test_what_looks_like_somebody_else_or_everybody_gets_no_token": (
            "Nobody gets a token who would look like somebody else or everybody."
        ),
    },
    "unit/daemon/gateway/test_who_asks.py": {
        "test_what_others_reach_wants_authentication_and_tls": (
            "Beyond loopback a gateway listens with authentication and TLS only."
        ),
    },
    "unit/daemon/installation/test_own_files.py": {
        "test_what_was_left_open_is_tightened_when_a_process_starts": (
            "The home, its database, tokens, logs and spooled results are their user's alone, "
            "whatever the umask."
        ),
    },
    "unit/daemon/telemetry/test_http_post.py": {
        "test_a_delivery_ends_in_time_whatever_the_receiver_does": (
            "A webhook or lineage event takes no longer than its time limit, whatever its receiver does."
        ),
        "test_only_web_addresses_are_set_and_sent_to": (
            "They are sent to web addresses alone, and follow no redirection."
        ),
        "test_a_receiver_tells_by_the_signature_who_sent_it_and_when": (
            "Their receiver can tell who sent them, and when."
        ),
    },
    "unit/daemon/cli/test_cells.py": {
        "test_csv_is_neither_obeyed_by_a_terminal_nor_computed_by_a_spreadsheet": (
            "No terminal obeys, and no spreadsheet computes, what stands in a table or in CSV."
        ),
    },
    "integration/test_chart_tools.py": {
        "test_the_suites_of_helm_unittest_pass_and_one_that_is_wrong_does_not": (
            "The chart puts no secret into a ConfigMap, and a gateway's pod gets to its storage, "
            "metastore and database alone."
        ),
    },
}
"""What is no statement: by file (from the folder tests on) and test, what it holds."""


def security_page() -> str:
    """The page."""
    return (
        "\n".join(
            [
                NOTICE,
                _INTRO + _STATEMENTS + "\n".join(_table(ATTACKS)),
                _OF_ICEBERG + "\n".join(_table(ICEBERG_ATTACKS)),
                _OTHERS + "\n".join(_others()),
            ]
        )
        + "\n"
    )


def _table(attacks: tuple[Attack, ...]) -> Iterator[str]:
    yield f"| | {' | '.join(Role)} | statement |"
    yield "|---|" + "---|" * len(Role) + "---|"
    for one in attacks:
        words = (_word(one, role) for role in Role)
        yield f"| {one.name} | {' | '.join(words)} | {cell(f'`` {_said(one)} ``')} |"


def _others() -> Iterator[str]:
    for file, tests in PROMISES.items():
        for test, promise in tests.items():
            yield f"| {promise} | `tests/{file}`, `{test}` |"


def _said(attack: Attack) -> str:
    return attack.text.replace("{{", "{").replace("}}", "}")


def _word(attack: Attack, role: Role) -> str:
    return {None: "", True: "yes", False: "no"}[attack.allowed.get(role)]
