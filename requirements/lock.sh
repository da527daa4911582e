#!/bin/sh
# Renews the lock files: one per group, each complete in itself, versions equal in all of them. Run by `make lock`.
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

compile() { # compile GROUP ARGUMENTS...
    group=$1
    shift
    .venv/bin/uv pip compile -q --universal --python-version 3.11 --upgrade --generate-hashes --no-header --no-annotate \
        --no-emit-index-url --no-emit-find-links "$@" -o "$fresh/$group.in" >/dev/null
    {
        echo "# Written by \`make lock\`. Install with: pip install --require-hashes -r FILE"
        cat "$fresh/$group.in"
    } >"$fresh/$group.txt"
    echo "requirements/$group.txt: $(grep -c '==' "$fresh/$group.txt") packages"
}

compile dev pyproject.toml --extra dev
same="--constraints $fresh/dev.txt"
compile control pyproject.toml $same
compile spark pyproject.toml --extra spark $same
compile sql pyproject.toml --extra spark --extra sql $same
compile demo pyproject.toml --extra demo $same
echo uv | compile bootstrap - $same                            # the installer
printf 'hatchling\nsetuptools\nwheel\n' | compile build - $same # what source packages, ours too, are built with
mv "$fresh"/*.txt requirements/ # only now: an interrupted run changes nothing
