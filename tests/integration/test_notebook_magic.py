"""`%%lakewarden` in a real IPython shell: with an attached session, and with a gateway."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError as CellError
from IPython.core.interactiveshell import InteractiveShell
from pyspark.sql import DataFrame, SparkSession

import lakewarden
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from support.servers.gateway import running_gateway

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    services = open_services(home=home)
    initialise(services, services.user)
    return home


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Any]:  # IPython's own methods have no types
    make: Any = InteractiveShell
    shell = make(ipython_dir=str(tmp_path))
    shell.run_line_magic("load_ext", "lakewarden")
    yield shell
    shell._atexit_once()


def test_a_cell_runs_in_the_attached_session_and_gives_the_last_result(
    shell: Any, spark: SparkSession, home: Path
) -> None:
    with lakewarden.attach(spark, home=home) as lw:
        shell.user_ns["lw"] = lw
        found = shell.run_cell_magic("lakewarden", "", "SELECT 1 AS a; SELECT ';' AS b, 2 AS c;")
        assert isinstance(found, DataFrame)
        assert [tuple(row) for row in found.collect()] == [(";", 2)]
        shell.user_ns["mine"] = shell.user_ns.pop("lw")
        (row,) = shell.run_cell_magic(
            "lakewarden", "mine", "SHOW MANAGED TABLES LIKE 'lakewarden.runs'"
        ).collect()
        assert row.name == "lakewarden.runs"


def test_a_cell_without_a_session_or_a_statement_says_what_to_write(shell: Any) -> None:
    with pytest.raises(CellError, match=r"no attached session in the variable lw.*lakewarden\.attach"):
        shell.run_cell_magic("lakewarden", "", "SELECT 1")
    with pytest.raises(CellError, match="There is no statement"):
        shell.run_cell_magic("lakewarden", "", " -- nothing\n")


def test_sql_is_left_as_it_is_written_and_no_token_is_taken(
    shell: Any, spark: SparkSession, home: Path
) -> None:
    with lakewarden.attach(spark, home=home) as lw:
        shell.user_ns |= {"lw": lw, "x": 5}
        (row,) = shell.run_line_magic("lakewarden", "SELECT '$x {x}' AS a").collect()
        assert row.a == "$x {x}"
    with pytest.raises(CellError, match="LAKEWARDEN_TOKEN"):
        shell.run_line_magic("lakewarden", "hive+http://ana:hush@127.0.0.1:1")


def test_a_gateways_answer_is_a_pandas_frame_and_its_refusal_one_line(shell: Any, home: Path) -> None:
    with running_gateway(home, {}) as gateway:
        shell.run_line_magic("lakewarden", f"hive+http://127.0.0.1:{gateway.port}")
        found = shell.run_line_magic("lakewarden", "SELECT name, row FROM lakewarden.tables WHERE row = 0")
        assert found.to_dict("records") == [{"name": "lakewarden.tables", "row": 0}]
        with pytest.raises(CellError, match="nothing"):
            shell.run_line_magic("lakewarden", "SELECT nothing FROM lakewarden.tables")
        gateway.process.kill()
        gateway.process.wait()
        with pytest.raises(CellError, match="The gateway does not answer"):
            shell.run_line_magic("lakewarden", "SELECT name FROM lakewarden.tables")
