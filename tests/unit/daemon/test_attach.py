"""What `lakewarden.attach` refuses before it touches anything."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkAttributeError

import lakewarden
from lakewarden.catalog.errors import UsageError


class SparkSession:
    """Answers as that of `pyspark.sql.connect` does, whose own module needs packages that are not installed here."""

    def __getattr__(self, name: str) -> object:
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": name}
        )


def test_a_spark_connect_session_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Spark Connect session cannot be attached") as refused:
        lakewarden.attach(SparkSession(), home=tmp_path)  # type: ignore[arg-type]  # a session of another kind
    assert "lakewarden gateway" in (refused.value.hint or "")
    assert not list(tmp_path.iterdir())
