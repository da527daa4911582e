"""Messages made of somebody else's words end with one full stop."""

import pytest

from lakewarden.catalog.units import sentence
from lakewarden.daemon.cli.commands.leaving import tell_left
from lakewarden.daemon.usecases.runs.leaving import Left
from support.builders.system_samples import table_row


@pytest.mark.parametrize("said", ["not given back", "Nothing was changed.", "Is it there?"])
def test_a_sentence_ends_once(said: str) -> None:
    ended = sentence(said)
    assert ended.rstrip(".?!") == said.rstrip(".?!") and ended[-1] in ".?!" and not ended.endswith("..")


def test_what_a_run_said_of_a_table_that_left_is_not_stopped_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell_left(
        Left(row=table_row(1), sentence="not given back: the table was made anew. Nothing was changed.")
    )
    assert capsys.readouterr().err.endswith("Nothing was changed.\n")
