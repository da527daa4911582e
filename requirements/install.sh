#!/bin/sh
# Makes .venv what requirements/dev.txt says. Safe to interrupt and to run again; says what it does. Run by `make setup`.
set -eu
cd "$(dirname "$0")/.."

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

python=
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || fail "Python 3.11 or newer is needed; install it, or name it with PYTHON=... ."

java=${JAVA_HOME:+$JAVA_HOME/bin/}java
command -v "$java" >/dev/null || fail "Java is needed: install a JDK 17 or 21, or set JAVA_HOME."
version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
[ "${version:-0}" -ge 17 ] || fail "Spark needs Java 17 or 21; this one is ${version:-unknown}."
command -v mvn >/dev/null || fail "Maven (the command mvn) is needed to fetch Spark's jars: install it."

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    say "creating .venv with $("$python" --version)"
    "$python" -m venv .venv || fail "this Python cannot make virtual environments; install its venv package (python3-venv)."
fi
if ! .venv/bin/uv --version >/dev/null 2>&1; then
    say "installing the installer (uv)"
    .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
fi
say "installing the locked dependencies (the first time PySpark alone is 450 MB)"
.venv/bin/uv pip install -q --python .venv/bin/python --require-hashes --build-constraints requirements/build.txt \
    -r requirements/dev.txt
say "installing lakewarden itself, editable"
.venv/bin/uv pip install -q --python .venv/bin/python --no-deps --no-build-isolation --editable .
say "done: .venv/bin/lakewarden"
