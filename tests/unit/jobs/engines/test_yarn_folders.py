"""A session on YARN is told by files where the cluster is: without them it is refused, in words."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.engines.spark.yarn import require_cluster


@pytest.mark.parametrize("master", ["local[*]", "k8s://https://cluster", "spark://host:7077"])
def test_other_masters_need_no_files(master: str) -> None:
    require_cluster(master, {})


@pytest.mark.parametrize("variable", ["HADOOP_CONF_DIR", "YARN_CONF_DIR"])
def test_either_variable_may_name_the_folder(tmp_path: Path, variable: str) -> None:
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    require_cluster("yarn", {variable: str(tmp_path)})


def test_without_a_folder_both_variables_are_named() -> None:
    with pytest.raises(PreconditionError, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR") as caught:
        require_cluster("yarn", {"HADOOP_CONF_DIR": ""})
    assert "yarn-site.xml" in caught.value.hint


def test_a_folder_of_something_else_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match=f"HADOOP_CONF_DIR is {tmp_path}, where there is no yarn"):
        require_cluster("yarn", {"HADOOP_CONF_DIR": str(tmp_path)})
