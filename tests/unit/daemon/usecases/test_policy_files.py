"""A file of policies: read as it is written, written as it is read, refused with its line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.rows import Mode
from lakewarden.catalog.policy.effective import POLICY_KEYS, Value
from lakewarden.catalog.policy.keys import PolicyKind
from lakewarden.daemon.usecases.policy_files import as_text, read_policies

VALUES: dict[PolicyKind, st.SearchStrategy[Value]] = {
    PolicyKind.MODE: st.sampled_from(Mode),
    PolicyKind.DURATION: st.integers(0, 10**7),
    PolicyKind.SIZE: st.integers(1, 10**12),
    PolicyKind.COUNT: st.integers(1, 10**6),
    PolicyKind.SHARE: st.sampled_from([0.0, 0.1, 0.25, 1.0]),
    PolicyKind.SWITCH: st.booleans(),
    PolicyKind.HOURS: st.just("08:00-18:00"),
}
POLICIES = st.dictionaries(
    st.sampled_from(["*", "sales.*", "sales.orders", "default.größe", "a.null"]),
    st.fixed_dictionaries({}, optional={key.key: VALUES[key.kind] for key in POLICY_KEYS}),
)


@settings(max_examples=30)
@given(POLICIES)
def test_what_is_written_is_read_back(policies: dict[str, dict[str, Value]]) -> None:
    text = as_text(policies)
    assert read_policies(text) == policies
    assert as_text(read_policies(text)) == text


def test_a_file_is_read_as_people_write_it() -> None:
    text = """
# the fleet
"*": {vacuum.retention: 30 days}
sales.*:
  mode: manage
  compaction.enabled: no
orders:
sales.orders:
  rollback.promise: 7 days
"""
    assert read_policies(text) == {
        "*": {"vacuum.retention": 30 * 86_400},
        "sales.*": {"mode": Mode.MANAGE, "compaction.enabled": False},
        "default.orders": {},
        "sales.orders": {"rollback.promise": 7 * 86_400},
    }
    assert read_policies("") == read_policies("# nothing") == {}


def test_scopes_come_first_the_widest_at_the_top() -> None:
    lines = as_text({name: {"mode": Mode.MANAGE} for name in ("b.t", "a.t", "b.*", "*")}).splitlines()
    assert lines[::2] == ["'*':", "b.*:", "a.t:", "b.t:"]


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ("- a\n- b", "It is not a policy file.", "Write the name"),
        ("a.b: {\n", "Line 2 is not YAML", ""),
        (
            "a.b:\n  mode: manage\n  vacum.retention: 3 days",
            "Line 3: There is no policy key 'vacum.retention'.",
            "Did you mean vacuum.retention?",
        ),
        ("a.b:\n  vacuum.retention: soon", "Line 2: 'soon' is not a valid duration", "Write it like"),
        ("a.b:\n  vacuum.retention:", "Line 2: '' is not a valid duration", "Write it like"),
        ("a.b: manage", "Line 1: a.b has no keys.", "Write the name"),
        ("a.b:\n  mode: [manage]", "Line 2: This is not a single value.", "Write the name"),
        ("a.b:\n  mode: !!python/name:os.system x", "Line 2: This is not a single value.", "Write the name"),
        ("a.b: {}\nA.B: {}", "Line 2: a.b stands twice.", "Keep one"),
        ("a.*: {}\nA.*: {}", "Line 2: a.* stands twice.", "Keep one"),
        ("x y.*: {}", "Line 1: 'x y.*' is neither a table name nor a scope.", "Write the name"),
        ("a.b:\n  mode: manage\n  mode: observe", "Line 3: mode of a.b stands twice.", "Keep one"),
        ("/lake/t: {}", "Line 1: '/lake/t' is neither a table name nor a scope.", "Write the name"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(text: str, sentence: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_policies(text)
    assert sentence in str(refused.value) and hint in refused.value.hint
