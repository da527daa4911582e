"""The version graph: what rows and logs come to together, and what follows from it."""

from dataclasses import replace
from datetime import UTC, datetime

from lakewarden.catalog.lineage.edges import NOT_KNOWN, NOTHING, rows_of
from lakewarden.catalog.lineage.graph.build import build_graph
from lakewarden.catalog.lineage.graph.graph import NO_NODE, VersionGraph
from lakewarden.catalog.model.lineage_record import LineageInput
from lakewarden.catalog.model.rows import Confidence, LineageRow
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from lakewarden.jobs.rollback.plan.rollback_planner import plan_rollback
from support.builders.tables_by_hand import NO_ROWS, facts, history

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BARE = LineageRow(
    output_id="",
    output_version=0,
    input_id=NOTHING,
    operation="append",
    confidence=Confidence.COMMITTED,
    recorded_at=NOW,
)


def rows(*edges: str, **changes: object) -> list[LineageRow]:
    """Edges spelled `b@1 append a@2`; `a@1..2` for changes only, `` for nothing, `?` for not known."""
    made = []
    for edge in edges:
        output, operation, source = [*edge.split(" "), ""][:3]
        table, _, version = output.partition("@")
        input_id, _, versions = source.partition("@")
        after, _, upto = versions.rpartition("..")
        row = replace(
            BARE,
            output_id=table,
            output_version=int(version),
            operation=operation,
            input_id=input_id,
            input_version=int(upto) if upto else None,
            from_version=int(after) if after else None,
        )
        made.append(replace(row, **changes))  # type: ignore[arg-type]  # tests name real fields
    return made


def tainted(graph: VersionGraph, *seeds: str, weak: bool = False) -> set[str]:
    """`table@version` of everything whose content depends on the seeds."""
    nodes = [graph.node(one.partition("@")[0], int(one.partition("@")[2])) for one in seeds]
    assert NO_NODE not in nodes
    found = graph.closure(nodes, weak=weak)
    return {f"{graph.table_of(node)}@{graph.versions[node]}" for node in found.touched() if found.state(node)}


def known(graph: VersionGraph, place: str) -> bool:
    table, _, version = place.partition("@")
    return bool(graph.known[graph.node(table, int(version))])


def test_rows_alone_are_enough_where_the_log_is_gone() -> None:
    told = rows("a@0 replace", "a@1 append", "b@0 replace a@1", "b@1 overwrite a@0", "c@0 replace b@0")
    graph = build_graph(codec(LINEAGE).encode(told), {})
    assert tainted(graph, "a@1") == {"a@1", "b@0", "c@0"}
    assert graph.versions[graph.head("b")] == 1 and known(graph, "b@1")


def test_rows_of_aliases_and_restores_carry_content() -> None:
    told = rows("a@0 replace", "a@1 append", "a@2 alias a@1", "a@3 restore a@0", "a@4 restore a@2")
    assert tainted(build_graph(codec(LINEAGE).encode(told), {}), "a@1") == {"a@1", "a@2", "a@4"}


def test_what_the_log_and_the_rows_say_is_added_up() -> None:
    more = codec(LINEAGE).encode(rows("c@1 append b@0"))
    tables = {
        "a": history("create", "append"),
        "b": history("create"),
        "c": history("create", "append <- a@0"),
    }
    assert tainted(build_graph(more, tables), "b@0") == {"b@0", "c@1"}
    assert tainted(build_graph(NO_ROWS, tables), "b@0") == {"b@0"}


def test_a_version_that_nobody_tells_of_leaves_doubt() -> None:
    told = rows("a@0 replace", "a@2 append", "a@4 overwrite", "b@3 append")
    graph = build_graph(codec(LINEAGE).encode(told), {})
    assert [known(graph, place) for place in ("a@0", "a@2", "a@4", "b@3")] == [True, False, True, False]


def test_a_table_whose_log_begins_with_a_write_that_reads_the_table_itself_is_not_healed_by_it() -> None:
    told = codec(LINEAGE).encode(rows("a@0 replace", "a@1 append", "a@2 append"))
    cut = {"a": history("create", "append", "append", "overwrite <- self")[3:]}
    assert tainted(build_graph(told, cut), "a@1") == {"a@1", "a@2", "a@3"}


def test_a_write_that_reads_its_table_and_an_older_version_of_it_comes_from_both() -> None:
    log = history("create", "append", "append", "overwrite <- self, a@0")
    assert tainted(build_graph(NO_ROWS, {"a": log}), "a@1") == {"a@1", "a@2", "a@3"}
    kept = codec(LINEAGE).encode([row for one in log for row in rows_of("a", one, at=NOW)])
    assert tainted(build_graph(kept, {}), "a@1") == {"a@1", "a@2", "a@3"}
    assert tainted(build_graph(kept, {}), "a@0") == {"a@0", "a@1", "a@2", "a@3"}


def test_changes_of_versions_that_nobody_tells_of_count_as_content() -> None:
    told = rows("a@0 replace", "a@1 append", "a@2 append", "a@3 append", "b@0 replace a@1..3")
    whole = build_graph(codec(LINEAGE).encode(told), {})
    assert "b@0" not in tainted(whole, "a@1")
    holed = build_graph(codec(LINEAGE).encode([row for row in told if row.output_version != 2]), {})
    assert "b@0" in tainted(holed, "a@1")


def test_inputs_that_are_missing_leave_doubt_and_better_rows_remove_it() -> None:
    foreign = rows(f"b@0 replace {NOT_KNOWN}", confidence=Confidence.HINT)
    assert not known(build_graph(codec(LINEAGE).encode(foreign), {}), "b@0")
    later = rows("b@0 replace a@1", confidence=Confidence.STREAM)
    assert known(build_graph(codec(LINEAGE).encode(foreign + later), {}), "b@0")
    incomplete = rows("b@0 replace a@1", f"b@0 replace {NOT_KNOWN}")
    assert not known(build_graph(codec(LINEAGE).encode(incomplete), {}), "b@0")
    unpinned = rows("b@0 replace a", "a@0 replace")
    assert not known(build_graph(codec(LINEAGE).encode(unpinned), {}), "b@0")


def test_what_a_listener_saw_counts_if_the_policy_says_so() -> None:
    told = codec(LINEAGE).encode(
        rows("a@0 replace", "a@1 append") + rows("b@0 replace a@1", confidence=Confidence.PLAN)
    )
    assert tainted(build_graph(told, {}), "a@1") == {"a@1"}
    assert tainted(build_graph(told, {}), "a@1", weak=True) == {"a@1", "b@0"}
    assert tainted(build_graph(told, {}, trusting=frozenset({"b"})), "a@1") == {"a@1", "b@0"}
    assert tainted(build_graph(told, {}, trusting=frozenset({"a"})), "a@1") == {"a@1"}, "it is b's to say"


def test_a_hint_of_taint_makes_a_commit_unknown_without_any_dependency() -> None:
    tables = {"a": history("create", "append"), "b": history("create", "append ?")}
    hinted = codec(LINEAGE).encode(rows("b@1 append a@1", confidence=Confidence.HINT))
    request = RollbackRequest(seeds=(BadVersions(table_id="a", versions=(1,)),))
    every = {one: facts(one) for one in tables}
    quiet = plan_rollback(request, build_graph(NO_ROWS, tables), tables, every)
    assert [one.table_id for one in quiet.tables] == ["a"]
    made = plan_rollback(request, build_graph(hinted, tables), tables, every)
    assert [(one.table_id, one.unknown) for one in made.tables] == [("a", ()), ("b", (1,))]


def test_a_location_that_is_managed_by_now_is_that_table() -> None:
    told = codec(LINEAGE).encode(rows("b@0 replace file:///w/a@1", "a@0 replace", "a@1 append"))
    assert tainted(build_graph(told, {}), "a@1") == {"a@1"}
    assert "b@0" in tainted(build_graph(told, {}, places={"file:///w/a": "a"}), "a@1")


# recreated tables

OLD = {"output_format_id": "old"}


def test_a_reader_of_the_predecessor_is_not_a_reader_of_the_table() -> None:
    told = rows("a@0 replace", "a@1 append", **OLD) + rows("b@0 replace a@1", input_format_id="old")
    graph = build_graph(codec(LINEAGE).encode(told), {"a": history("create", "append")})
    assert tainted(graph, "a@1") == {"a@1"}


def test_taint_passes_through_a_predecessor() -> None:
    told = (
        rows("s@0 replace", "s@1 append")
        + rows("a@0 replace", "a@1 append s@1", **OLD)
        + rows("b@0 replace a@1", input_format_id="old")
    )
    graph = build_graph(codec(LINEAGE).encode(told), {"a": history("create", "append")})
    assert tainted(graph, "s@1") == {"s@1", "a#old@1", "b@0"}


def test_a_version_after_the_head_is_of_a_predecessor_even_without_uuid() -> None:
    told = rows("b@0 replace a@7", "b@1 append")
    graph = build_graph(codec(LINEAGE).encode(told), {"a": history("create", "append")})
    assert graph.versions[graph.head("a")] == 1
    assert not known(graph, "b@0"), "nobody can tell what it read"
    one = replace(
        history("create <- a@7")[0],
        inputs=(LineageInput(table_id="a", location="file:///w/a", format="delta", version=7),),
    )
    assert not known(build_graph(NO_ROWS, {"a": history("create"), "b": (one,)}), "b@0")


def replaced(edge: str, now: str, before: str) -> list[LineageRow]:
    """A row that says which UUID a version replaced in its log."""
    return rows(edge, output_format_id=now, input_format_id=before)


PREDECESSOR = [
    *rows("s@0 replace", "s@1 append"),
    *rows("a@0 replace", "a@1 append s@1", **OLD),
    *replaced("a@2 replace", "newer", "old"),
    *rows("a@2 replace a@1", output_format_id="newer"),
    *rows("a@3 append", output_format_id="newer"),
]
"""What is on record of a table that was replaced by itself, dropped, and made anew."""


def test_what_a_predecessor_that_was_replaced_took_over_from_itself_is_followed() -> None:
    told = PREDECESSOR + rows("b@0 replace a@3", input_format_id="newer")
    graph = build_graph(codec(LINEAGE).encode(told), {"a": history("create", "append")})
    assert tainted(graph, "s@1") == {"s@1", "a#old@1", "a#old@2", "a#old@3", "b@0"}
    assert known(graph, "a#old@2") and known(graph, "b@0")


def test_changes_that_were_read_across_a_replace_of_a_predecessor_are_followed() -> None:
    read = rows("b@0 replace a@0..3", input_format_id="newer")
    healed = [row for row in PREDECESSOR if (row.output_version, row.input_id) != (2, "a")]
    graph = build_graph(codec(LINEAGE).encode(healed + read), {"a": history("create", "append")})
    assert tainted(graph, "s@1") == {"s@1", "a#old@1", "b@0"}
    assert not graph.closure([graph.node("s", 1)]).state(graph.node("a#old", 3))


def test_changes_that_nobody_tells_of_before_a_table_began_anew_leave_doubt() -> None:
    told = rows("a@0 replace", "a@1 append", "a@3 overwrite", "b@0 replace a@1..3", "b@1 append a@2..3")
    graph = build_graph(codec(LINEAGE).encode(told), {})
    assert not known(graph, "b@0") and known(graph, "b@1")


def test_of_a_log_that_was_cleaned_only_its_own_versions_count() -> None:
    head = tuple(replace(one, format_id="now") for one in history("create", "append", "append", "append"))
    own = rows("a@0 replace", "a@1 append", "a@2 append", output_format_id="first")
    own += replaced("a@3 replace", "now", "first")
    told = PREDECESSOR + own + rows("b@0 replace a@1", input_format_id="old")
    told += rows("c@0 replace a@1", input_format_id="first")
    graph = build_graph(codec(LINEAGE).encode(told), {"a": head[3:]})
    assert tainted(graph, "a@1") == {"a@1", "a@2", "a@3", "c@0"}
    assert tainted(graph, "s@1") == {"s@1", "a#old@1", "a#old@2", "a#old@3", "b@0"}


def test_where_nobody_tells_how_a_cleaned_log_began_every_version_of_the_place_counts() -> None:
    head = tuple(replace(one, format_id="now") for one in history("create", "append", "append", "append"))
    told = rows("a@0 replace", "a@1 append", **OLD) + rows("b@0 replace a@1", input_format_id="old")
    graph = build_graph(codec(LINEAGE).encode(told), {"a": head[3:]})
    assert tainted(graph, "a@1") == {"a@1", "a@3", "b@0"}


def test_of_a_dropped_table_only_versions_of_its_last_log_are_its_own() -> None:
    own = rows("a@0 replace", "a@1 append", output_format_id="last")
    told = codec(LINEAGE).encode(PREDECESSOR + own + rows("b@0 replace a@1", input_format_id="last"))
    graph = build_graph(told, {"a": ()}, newest={"a": "last"})
    assert tainted(graph, "s@1") == {"s@1", "a#old@1", "a#old@2", "a#old@3"}
    assert tainted(graph, "a@1") == {"a@1", "b@0"} and graph.versions[graph.head("a")] == 1
    assert "b@0" in tainted(build_graph(told, {"a": ()}), "s@1"), "both count where nobody tells the last"


def test_uuids_that_replace_one_another_in_circles_end_all_the_same() -> None:
    told = replaced("a@1 replace", "one", "other") + replaced("a@2 replace", "other", "one")
    graph = build_graph(codec(LINEAGE).encode(told), {"a": history("create", "append", "append")})
    assert graph.versions[graph.head("a")] == 2


def test_create_or_replace_keeps_the_table_although_its_uuid_changes() -> None:
    a = (history("create")[0], *(replace(one, format_id="u2") for one in history("create", "replace")[1:]))
    told = rows("b@0 replace a@0", input_format_id="u1") + rows("c@0 replace a@1", input_format_id="u2")
    graph = build_graph(codec(LINEAGE).encode(told), {"a": a})
    assert tainted(graph, "a@0") == {"a@0", "b@0"}
    assert tainted(graph, "a@1") == {"a@1", "c@0"}


# robustness


def test_rows_that_contradict_themselves_end_all_the_same() -> None:
    told = rows("a@1 append b@1", "b@1 append a@1", "a@1 append a@1", "a@2 restore a@2")
    graph = build_graph(codec(LINEAGE).encode(told), {})
    assert {"a@1", "b@1"} <= tainted(graph, "a@1")
    assert graph.before(graph.node("a", 1))
    assert len(list(graph.ancestors(graph.node("a", 2)))) == 2
    assert not known(graph, "a@2"), "a RESTORE to itself tells nothing"


def test_nothing_comes_to_nothing() -> None:
    graph = build_graph(NO_ROWS, {})
    assert (graph.tables, graph.head("a"), list(graph.nodes("a"))) == ((), NO_NODE, [])
    assert build_graph(NO_ROWS, {"a": ()}).head("a") == NO_NODE


def test_what_was_there_before_follows_from_versions_and_edges() -> None:
    tables = {"a": history("create", "append <- b@1"), "b": history("create", "append <- c@0", "append")}
    tables["c"] = history("create", "append")
    graph = build_graph(NO_ROWS, tables)
    before = graph.before(graph.node("a", 1))
    newest = {graph.tables[table]: graph.versions[node] for table, node in before.items()}
    assert newest == {"a": 1, "b": 1, "c": 0}


MENDED = ("create", "append", "append", "append", "update", "remove files <- a@1, a@2..4")
"""Version 2 was bad; its files were taken out, and what 3 and 4 did of themselves stayed."""


def test_a_table_whose_bad_files_were_removed_depends_on_the_rest_and_on_what_that_read() -> None:
    tables = {
        "a": history(*MENDED[:3], "append <- b@1", *MENDED[4:]),
        "b": history("create", "append"),
        "whole": history("create <- a@4", "append <- a@5"),
    }
    graph = build_graph(NO_ROWS, tables)
    assert tainted(graph, "a@2") == {"a@2", "a@3", "a@4", "whole@0", "whole@1"}
    assert tainted(graph, "a@1") >= {"a@5", "whole@1"}, "what was there before stays"
    assert tainted(graph, "b@1") >= {"a@3", "a@5"}, "so does what a later commit read"


def test_rows_say_the_same_of_removed_files_when_the_log_is_gone() -> None:
    told = rows("a@0 replace", "a@1 append", "a@2 append", "a@3 append", "a@4 update")
    told += rows("a@5 remove_files a@1", "a@5 remove_files a@2..4", operation="remove files")
    graph = build_graph(codec(LINEAGE).encode(told), {})
    assert tainted(graph, "a@2") == {"a@2", "a@3", "a@4"}
    assert "a@5" in tainted(graph, "a@3")
    without_3 = [one for one in told if (one.output_version, one.operation) != (3, "append")]
    doubted = build_graph(codec(LINEAGE).encode(without_3), {})
    assert "a@5" in tainted(doubted, "a@2"), "a version that nobody tells of may have done anything"
