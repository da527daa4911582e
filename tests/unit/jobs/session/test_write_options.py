"""What options may say in a statement that writes, and what is no statement by itself."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.session.delta.write_options import require_no_marks, user_metadata_of
from lakewarden.jobs.session.judgement.statement_kinds import KINDS, StatementKind, kind_of


def test_the_users_own_metadata_is_handed_over() -> None:
    assert user_metadata_of({"UserMetadata": "mine", "mergeSchema": "true"}) == "mine"
    assert user_metadata_of({"replaceWhere": "k = 1"}) is None


@pytest.mark.parametrize("option", ["dataChange", "txnAppId", "txnversion", "path", "new"])
def test_what_speaks_for_a_commit_is_not_taken_nor_what_nobody_knows(option: str) -> None:
    with pytest.raises(UsageError, match=f"takes no option {option}"):
        user_metadata_of({option: "x"})


@pytest.mark.parametrize("option", ["userMetadata", "option.userMetadata", "OPTION.txnAppId", "dataChange"])
def test_a_table_is_not_made_with_a_commit_of_the_users_choice(option: str) -> None:
    with pytest.raises(UsageError, match="takes no option"):
        require_no_marks({"delta.appendOnly": "true", option: "x"})


def test_a_statement_that_is_on_no_list_is_unknown() -> None:
    assert kind_of("EraseEverything") is StatementKind.UNKNOWN
    assert StatementKind.UNKNOWN not in KINDS.values()
