"""Three hundred real tables from a list, some broken: each is registered once, also where the command is killed."""

import json
import re
import shutil
import signal
import threading
import uuid
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.model.rows import RowKind, Source, TableState
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import AUDIT, HEALTH, TABLES
from lakewarden.catalog.system.recovery.verify import verify
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from support.crashes.crashes import points_of
from support.processes.commands import Cli, caller, command

MADE = Path(__file__).parents[1] / "data" / "tables"
PLAIN = 288
COMMIT = Path("_delta_log") / f"{0:020}.json"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plain tables of one commit; `broken` ones, a nested one, a copy, and folders that are none."""
    root = tmp_path_factory.mktemp("onboarding") / "lake"
    write_deltalake(str(root / "t0"), pa.table({"id": pa.array(range(10), pa.int64())}))
    text = (root / "t0" / COMMIT).read_text()
    for number in range(1, PLAIN):
        _copied(root / "t0", root / f"t{number}", text)
    _copied(root / "t0", root / "t0" / "inner", text)
    shutil.copytree(root / "t1", root / "twin")
    for name in ("commit_truncated", "data_missing", "log_emptied"):
        shutil.copytree(MADE / name, root / name)
    (root / "folder").mkdir()
    return root


def _copied(first: Path, place: Path, text: str) -> None:
    """A table like the first one, with a UUID of its own."""
    shutil.copytree(first, place)
    (place / COMMIT).write_text(re.sub(r'("metaData":\{"id":")[^"]+', rf"\g<1>{uuid.uuid4()}", text))


@pytest.fixture(scope="module")
def listed(lake: Path) -> Path:
    """300 rows: 288 plain tables, 2 that are broken, one twice, 9 that have to be refused."""
    rows = [f"{lake}/t{number},db.t{number},ana,14 days" for number in range(PLAIN)]
    rows[40:40] = [
        f"{lake}/commit_truncated,,ana,",
        f"{lake}/data_missing,,ana,",
        f"{lake}/log_emptied,,ana,",
        f"{lake}/nowhere,,ana,",
        f"{lake}/t2,db.t2,ana,soon",
        ",,ana,",
    ]
    rows += [
        f"{lake}/t0/inner,db.inner,ana,",
        f"{lake}/twin,db.twin,ana,",
        f"{lake}/folder,,ana,",
        f"{lake}/t3,db.t3,ana,14 days",
        f"{lake}/t4,db.t4,bo,14 days",
        f"{lake}/commit_truncated,no table name,ana,",
    ]
    assert len(rows) == 300
    file = lake.parent / "tables.csv"
    file.write_text("\n".join(["path,name,owner,vacuum.retention", *rows, ""]))
    return file


REFUSED = {
    44: "is not a table of a format",
    45: "There is nothing at",
    46: "'soon' is not a valid duration for vacuum.retention",
    47: "It names no table",
    296: "lies inside the managed table db.t0",
    297: "carries the same table UUID as db.t1",
    298: "is not a table of a format",
    300: "is managed already, and its owner is ana",
    301: "is managed already, and its name is default.commit_truncated",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    assert command(folder, "init").returncode == 0
    return folder


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Commands in this process, on a home of their own."""
    called = caller(tmp_path / "home", monkeypatch, capfdbinary)
    called("init")
    return called


def services(home: Path) -> Services:
    return Services(load_settings(home=home, environment={}))


def check_whole(home: Path, lake: Path) -> None:
    """Every table is managed once, with health, its values and one entry in the audit."""
    store = services(home).store
    rows = [
        row for row in store.rows(TABLES).all() if row.kind is RowKind.TABLE and row.source is not Source.SELF
    ]
    assert Counter(row.location for row in rows) == Counter(
        canonical(f"{lake}/{name}")
        for name in (*(f"t{number}" for number in range(PLAIN)), "commit_truncated", "data_missing")
    )
    assert len({row.row for row in rows}) == len({row.name for row in rows}) == len(rows)
    plain = [row for row in rows if row.name.startswith("db.")]
    assert {(row.owner, row.policy.vacuum_retention_seconds, row.state) for row in plain} == {
        ("ana", 14 * 86_400, TableState.ACTIVE)
    }
    broken = {row.name: row.state for row in rows if row not in plain}
    assert broken == dict.fromkeys(
        ("default.commit_truncated", "default.data_missing"), TableState.QUARANTINED
    )
    health = {row.table_id for row in store.rows(HEALTH).all()}
    assert {row.table_id for row in rows} <= health
    entries = [row for row in store.rows(AUDIT).all() if row.what == "register"]
    assert Counter(row.on for row in entries if row.allowed) == Counter(
        str(lake / (row.location or "").rsplit("/", 1)[-1]) for row in rows
    )
    assert {row.on for row in entries if not row.allowed} >= {
        f"{lake}/{name}" for name in ("nowhere", "log_emptied", "twin", "t0/inner")
    }
    assert all(row.why for row in entries if not row.allowed)
    assert verify(store) == ()


@pytest.mark.few(1)
@pytest.mark.crash
@pytest.mark.parametrize("point", points_of("test_killed_in_the_middle_the_same_command_goes_on"))
def test_killed_in_the_middle_the_same_command_goes_on(
    home: Path, lake: Path, listed: Path, point: str
) -> None:
    arguments = ("tables", "register", "--from-file", str(listed))
    assert command(home, *arguments, failpoint=point).returncode == -signal.SIGKILL
    again = command(home, *arguments)
    assert again.returncode == 3, again.stderr
    assert "already managed; 9 refused." in again.stderr
    check_whole(home, lake)


@pytest.mark.long
def test_two_commands_at_once_register_each_table_once(home: Path, lake: Path, listed: Path) -> None:
    codes = list[int]()

    def do() -> None:
        codes.append(command(home, "tables", "register", "--from-file", str(listed)).returncode)

    threads = [threading.Thread(target=do) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert codes == [3, 3]
    check_whole(home, lake)


@pytest.mark.long
def test_what_a_list_comes_to_is_foreseen_told_and_not_repeated(
    cli: Cli, tmp_path: Path, lake: Path, listed: Path
) -> None:
    store = services(tmp_path / "home").store
    begun = store.rows(TABLES).version
    foreseen = cli("tables", "register", "--from-file", str(listed), "--dry-run", "-o", "json")
    assert foreseen.code == 3 and store.rows(TABLES).version == begun
    assert "Would register 290 tables, 2 of them quarantined; 1 already managed; 9 refused." in foreseen.err
    told = cli("tables", "register", "--from-file", str(listed), "-o", "json")
    assert told.code == 3
    assert "Registered 290 tables, 2 of them quarantined; 1 already managed; 9 refused." in told.err
    assert store.rows(TABLES).version == begun + 2, "batches of 100 and 200"
    assert len(told.json) == 300
    refused = {row["line"]: row for row in told.json if row["outcome"] == "refused"}
    assert set(refused) == set(REFUSED)
    for line, sentence in REFUSED.items():
        assert sentence in refused[line]["why"], refused[line]
    same = ("line", "where", "name", "state", "why", "hint")
    assert [[row[key] for key in same] for row in foreseen.json] == [
        [row[key] for key in same] for row in told.json
    ]
    check_whole(tmp_path / "home", lake)
    version, entries = store.rows(TABLES).version, len(store.rows(AUDIT).all())
    again = cli("tables", "register", "--from-file", str(listed))
    assert again.code == 3
    assert "Registered 0 tables; 291 already managed; 9 refused." in again.err
    assert len(again.out.splitlines()) == 1 + 9 + 2, "a head, what is refused, and what is broken"
    assert store.rows(TABLES).version == version
    assert len(store.rows(AUDIT).all()) == entries + 9, "the refused ones"


def test_patterns_and_lists_on_standard_input_mean_folders(
    cli: Cli, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = cli("tables", "register", f"{lake}/t1[0-2]", f"{lake}/t0", f"{lake}/x*", "-o", "json")
    assert said.code == 3
    assert [(row["name"], row["outcome"]) for row in said.json] == [
        ("default.t10", "registered"),
        ("default.t11", "registered"),
        ("default.t12", "registered"),
        ("default.t0", "registered"),
        (None, "refused"),
    ]
    assert "Nothing matches" in said.json[-1]["why"]
    (tmp_path / "in").write_text(f"# more\n{lake}/t20\n{lake}/t10\n")
    with (tmp_path / "in").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        said = cli("tables", "register", "--from-file", "-", "--owner", "bo", "-o", "json")
    assert [(row["name"], row["outcome"], row["owner"]) for row in said.json] == [
        ("default.t20", "registered", "bo"),
        (None, "refused", None),
    ]
    assert "its owner is" in said.json[1]["why"]
    assert cli("tables", "register", str(lake / "t20"), str(lake / "t21"), "--name", "db.x").code == 2
    assert cli("tables", "register").code == 2
    assert cli("tables", "register", "--from-file", str(tmp_path / "nowhere.csv")).code == 2


def test_a_mark_at_the_beginning_of_a_list_is_none_of_it(
    cli: Cli, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "t.csv": f"path,owner\r\n{lake}/t30,ana\r\n",
        "t.jsonl": json.dumps({"path": f"{lake}/t31"}),
        "t.yaml": f"- path: {lake}/t32\n",
        "t.txt": f"{lake}/t33\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
        said = cli("tables", "register", "--from-file", str(tmp_path / name), "-o", "json")
        assert [row["outcome"] for row in said.json] == ["registered"], (name, said)
    with (tmp_path / "t.csv").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        said = cli("tables", "register", "--from-file", "-", "-o", "json")
    assert [(row["line"], row["outcome"], row["owner"]) for row in said.json] == [
        (2, "already managed", "ana")
    ]


ODD_NAMES = ("a b", "a#b", "100%", "a%20b", "what?", "größe", "x+y&z", "t[1]", "st*r", 'it\'s "so"', "end ")


def test_a_folder_is_one_table_whatever_it_is_called(
    cli: Cli, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, text = tmp_path / "odd #1 100%", (lake / "t0" / COMMIT).read_text()
    for name in ODD_NAMES:
        _copied(lake / "t1", root / name, text)
    monkeypatch.setenv("LAKEWARDEN_DISCOVERY_ROOTS", str(root))
    said = cli("tables", "adopt", "-o", "json")
    assert (said.code, {row["outcome"] for row in said.json}) == (0, {"registered"})
    ids = {row["location"]: row["table_id"] for row in said.json}
    assert set(ids) == {canonical(str(root / name)) for name in ODD_NAMES}
    assert cli("tables", "adopt", "--dry-run", "-o", "json").json == []
    for name in ODD_NAMES:
        plain, uri = str(root / name), canonical(str(root / name))
        bare = f"file:{quote(plain, safe='/')}/"
        again = cli("tables", "register", plain, uri, bare, "-o", "json")
        assert [(row["outcome"], row["table_id"]) for row in again.json] == [
            ("already managed", ids[uri])
        ] * 3, name
        for spelling in (plain, uri, bare):
            shown = cli("tables", "show", spelling, "-o", "json").json
            assert (shown["table_id"], shown["state"], shown["version"]) == (ids[uri], "active", 0)
        assert cli("tables", "validate", plain).code == 0
    pattern = cli("tables", "register", f"{root}/*", f"file://{quote(str(root))}/*", "-o", "json")
    assert Counter(row["outcome"] for row in pattern.json) == {"already managed": 2 * len(ODD_NAMES)}
    listed = cli("tables", "list", "-o", "json").json
    assert sorted(row["location"] for row in listed if row["location"] in ids) == sorted(ids)


def test_a_remote_name_that_is_read_in_two_ways_is_refused(cli: Cli) -> None:
    said = cli("tables", "register", "hdfs://nowhere:1/lake/a%20b", "hdfs://nowhere:1/lake/a#b", "-o", "json")
    assert [row["outcome"] for row in said.json] == ["refused", "refused"]
    assert all("read #, ? and % in it in different ways" in row["why"] for row in said.json)


def test_everything_that_discovery_finds_is_adopted_in_batches(
    cli: Cli, tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWARDEN_DISCOVERY_ROOTS", str(lake))
    store = services(tmp_path / "home").store
    begun = store.rows(TABLES).version
    said = cli("tables", "adopt", "-o", "json")
    assert said.code == 3, "the copy is refused"
    counts = Counter(row["outcome"] for row in said.json)
    assert counts == {"registered": PLAIN + 2, "refused": 1}
    assert store.rows(TABLES).version == begun + 2
    rows = [row for row in store.rows(TABLES).all() if row.source is Source.DISCOVER]
    assert len(rows) == PLAIN + 2
    assert {row.what for row in store.rows(AUDIT).all()} == {"adopt"}
    assert json.loads(cli("tables", "adopt", "--dry-run", "-o", "json").out) == [
        {"where": canonical(str(lake / "twin"))}
    ]
