#!/bin/sh
# Runs each fuzz target in turn: fuzz.sh [TIME each]
set -eu
. "$(dirname "$0")/lib.sh"
cd "$root"

time=${1:-20s}
go=${GO:-go}
grep -rl --include='*_test.go' '^func Fuzz' . | while read -r f; do
	dir=$(dirname "$f")
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$f" | while read -r name; do
		echo "== $dir $name"
		$go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$dir"
	done
done
echo "PASS: fuzz"
