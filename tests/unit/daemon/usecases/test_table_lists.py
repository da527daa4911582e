"""Lists of tables as people write them: what is read, and what is said of a row that makes no sense."""

import pytest

from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.daemon.usecases.onboarding.lists import Listed, ListFormat, kind_of, read_list

TWO = [
    WantedTable(where="/lake/a", name="db.a", owner="ana", policy={"vacuum.retention": 14 * 86_400}),
    WantedTable(where="/lake/b", owner="bo"),
]
CSV = "path,name,owner,vacuum.retention\n/lake/a,db.a,ana,14 days\n/lake/b,,,\n"
YAML = """\
- path: /lake/a
  name: db.a
  owner: ana
  policy: {vacuum.retention: 14 days}
- /lake/b
"""
JSON = (
    '{"path": "/lake/a", "name": "db.a", "owner": "ana", "policy": {"vacuum.retention": "14 days"}}\n\n'
    '{"path": "/lake/b", "owner": null}\n'
)


@pytest.mark.parametrize(
    ("kind", "text", "lines"),
    [(ListFormat.CSV, CSV, [2, 3]), (ListFormat.YAML, YAML, [1, 5]), (ListFormat.JSON, JSON, [1, 3])],
    ids=["csv", "yaml", "json lines"],
)
def test_every_kind_of_list_says_the_same(kind: ListFormat, text: str, lines: list[int]) -> None:
    listed = read_list(text, kind, owner="bo")
    assert [one.asked for one in listed] == TWO
    assert [one.line for one in listed] == lines


def test_bare_paths_are_a_list_with_remarks_and_empty_lines_left_out() -> None:
    text = "# the events\n/lake/a, with a comma\n\n  s3://b/lake/c  \n"
    assert kind_of("-", text) is ListFormat.PATHS
    assert [(one.where, one.line) for one in read_list(text, ListFormat.PATHS)] == [
        ("/lake/a, with a comma", 2),
        ("s3://b/lake/c", 4),
    ]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("tables.csv", "x", ListFormat.CSV),
        ("tables.YML", "x", ListFormat.YAML),
        ("tables.jsonl", '{"path": "/a"}', ListFormat.JSON),
        ("tables.json", '[{"path": "/a"}]', ListFormat.YAML),
        ("-", '\n{"path": "/a"}', ListFormat.JSON),
        ("-", "# tables\n- /a\n", ListFormat.YAML),
        ("-", "owner,Path\nana,/a\n", ListFormat.CSV),
        ("-", "/a\n/b\n", ListFormat.PATHS),
        ("-", "", ListFormat.PATHS),
    ],
)
def test_the_name_says_how_a_list_is_written_or_else_its_beginning(
    name: str, text: str, kind: ListFormat
) -> None:
    assert kind_of(name, text) is kind


def test_a_list_of_names_alone_asks_the_metastore() -> None:
    [one] = read_list("name,owner\ndb.t,ana\n", ListFormat.CSV)
    assert one.asked == WantedTable(where="db.t", owner="ana")


def test_json_and_yaml_values_need_no_quotes() -> None:
    [first] = read_list(
        '{"path": "/a", "vacuum.enabled": false, "compaction.min_small_files": 9}', ListFormat.JSON
    )
    [second] = read_list(
        "- {path: /a, policy: {vacuum.enabled: no, compaction.min_small_files: 9}}", ListFormat.YAML
    )
    assert first.asked == second.asked
    assert isinstance(first.asked, WantedTable)
    assert first.asked.policy == {"vacuum.enabled": False, "compaction.min_small_files": 9}


@pytest.mark.parametrize(
    ("written", "owner"),
    [
        ("007123", "007123"), ("on", "on"), ("12:30", "12:30"), ("2024-13-01", "2024-13-01"),
        ("!!int abc", "abc"),
        ("!!bool foo", "foo"), ("0x10", "0x10"), ("~", None), ("null", None), ("", None), ("'null'", "null"),
    ],
)  # fmt: skip
def test_a_value_in_yaml_is_the_text_that_stands_there(written: str, owner: str | None) -> None:
    [one] = read_list(f"- path: /a\n  owner: {written}\n", ListFormat.YAML)
    assert one.asked == WantedTable(where="/a", owner=owner)


def test_a_json_array_is_json_with_the_line_of_each_row() -> None:
    text = '\n[{"path": "/a\\ud83d\\ude00"},\n\n\t{"path":\n"/b\\/c"}, ["/d"],\n7, "/e" ]\n'
    assert kind_of("-", text) is ListFormat.YAML
    assert [(one.where, one.line) for one in read_list(text, ListFormat.YAML)] == [
        ("/a\U0001f600", 2), ("/b/c", 4), ("", 5), ("", 6), ("/e", 6),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text"), [(ListFormat.JSON, '{"path": "/a\u2028b"}'), (ListFormat.PATHS, "/a\u2028b")]
)
def test_only_an_end_of_line_ends_a_line(kind: ListFormat, text: str) -> None:
    assert [one.where for one in read_list(f"{text}\n", kind)] == ["/a\u2028b"]


def test_empty_columns_at_the_end_are_none() -> None:
    [one] = read_list("path,owner,,\n/a,ana,,\n", ListFormat.CSV)
    assert one.asked == WantedTable(where="/a", owner="ana")


def problem(one: Listed) -> LakewardenError:
    assert isinstance(one.asked, LakewardenError), one
    return one.asked


@pytest.mark.parametrize(
    ("kind", "row", "sentence", "hint"),
    [
        (ListFormat.CSV, "/b,db.b,ana,soon", "'soon' is not a valid duration", "Write it like `30 days`"),
        (ListFormat.CSV, ",,ana,", "It names no table", "needs a path"),
        (ListFormat.CSV, "/b,db.b,ana,,x,y", "It has 6 values, the header has 4", "double quotes"),
        (ListFormat.JSON, '{"path": "/b"', "It is not JSON", "one object per line"),
        (ListFormat.JSON, "7", "It is not a table", "an object with path"),
        (ListFormat.JSON, '{"path": "/b", "ownr": "x"}', "'ownr' is neither path", "Did you mean owner?"),
        (ListFormat.JSON, r'{"path": "/b\ud800"}', r"'/b\ud800' is not UTF-8", "save the list"),
        (ListFormat.JSON, r'{"path": "/b", "own\ud800": "x"}', r"'own\ud800' is not UTF-8", "save the list"),
        (ListFormat.JSON, '{"path": ["/b"]}', "path is not a single value", "Write texts"),
        (ListFormat.YAML, "- {path: /b, policy: 7}", "Its policy is not an object", "policy: {"),
        (ListFormat.YAML, "- {path: /b, policy: {vacuum: {retention: 1}}}", "vacuum is not a single value",
            "Write texts"),
        (ListFormat.YAML, "- !!python/object:x {}", "It cannot be read", "without a tag"),
        (ListFormat.YAML, "- {path: !mine /b}", "!mine is not a plain value", "without a tag"),
        (ListFormat.YAML, "- {path: /b, <<: {owner: x}}", "A key is not a text", "<<"),
        (ListFormat.YAML, "- {path: /b, path: /x}", "path stands twice", "Keep one"),
        (ListFormat.YAML, "- {path: /b, policy: {policy: {mode: manage}}}", "policy is not a single value",
            "Write texts"),
        (ListFormat.YAML, "- {path: /b, policy: {owner: x}}", "owner is not a policy key", "beside policy"),
        (ListFormat.JSON, '{"path": "/b", "policy": {"path": "/x"}}', "path is not a policy key", "beside policy"),
    ],
)  # fmt: skip
def test_a_bad_row_refuses_itself_alone_with_its_line(
    kind: ListFormat, row: str, sentence: str, hint: str
) -> None:
    good = {ListFormat.CSV: "/c,,,", ListFormat.JSON: '{"path": "/c"}', ListFormat.YAML: "- /c"}[kind]
    head = {
        ListFormat.CSV: "path,name,owner,vacuum.retention\n",
        ListFormat.JSON: "\n",
        ListFormat.YAML: "# tables\n",
    }[kind]
    bad, fine = read_list(f"{head}{row}\n{good}\n", kind)
    assert bad.line == 2 and fine.line == 3
    assert sentence in str(problem(bad)) and hint in problem(bad).hint
    assert isinstance(fine.asked, WantedTable) and fine.asked.where == "/c"


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (ListFormat.CSV, "path,ownr\n/a,x\n", "'ownr' is neither path"),
        (ListFormat.CSV, "owner\nana\n", "The header has no column path"),
        (ListFormat.CSV, "path,path\n/a,/b\n", "A column occurs twice"),
        (ListFormat.CSV, 'path\n"/a"x\n', "Line 2 is not CSV"),
        (ListFormat.YAML, "- path: [\n", "not YAML"),
        (ListFormat.YAML, "path: /a\n", "It is not a list of tables"),
    ],
)
def test_what_is_no_list_is_refused_as_a_whole(kind: ListFormat, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_list(text, kind)


def test_a_value_over_several_lines_does_not_move_the_numbers_of_the_others() -> None:
    listed = read_list('path,owner\n"/a\nb",ana\n/c,ana\n', ListFormat.CSV)
    assert [one.line for one in listed] == [2, 4]
