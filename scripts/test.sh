#!/bin/sh
# All tests, called by make test with CGO_LDFLAGS set. The last line says
# PASS or FAIL and what.
set -eu
. "$(dirname "$0")/lib.sh"
cd "$root"

go=${GO:-go}
began=$(date +%s)
step=setup
trap 'code=$?; [ $code = 0 ] || printf "FAIL: %s (after %s s)\n" "$step" "$(($(date +%s) - began))"' EXIT
step() {
	step=$1
	shift
	printf '== %s\n' "$step"
	t=$(date +%s)
	"$@"
	printf 'ok: %s (%s s)\n' "$step" "$(($(date +%s) - t))"
}

AGENTGRAPH_TEST_MODEL=$(MODEL= scripts/model.sh)
export AGENTGRAPH_TEST_MODEL
AGENTGRAPH_TEST_LLAMA_SERVER=$(scripts/llama-server.sh)
export AGENTGRAPH_TEST_LLAMA_SERVER
# A test that needs the model or the library fails without it, it never skips.
CI=true
export CI
unset AGENTGRAPH_MODEL || true

pure_vet() { CGO_ENABLED=0 $go vet ./...; }
pure_test() { CGO_ENABLED=0 $go test -shuffle=on -timeout=15m ./...; }
full_vet() { $go vet ./...; }
full_test() { $go test -race -shuffle=on -timeout=25m ./...; }

# What the race detector would make too slow stands in files of cgo packages
# that say "!race"; the packages without cgo ran theirs above.
no_race() {
	files=$(grep -l '^//go:build.*!race' $(git ls-files '*_test.go' 2>/dev/null || find . -name '*_test.go') 2>/dev/null || true)
	[ -n "$files" ] || { echo "none"; return 0; }
	for dir in $(for f in $files; do dirname "$f"; done | sort -u); do
		names=$(for f in $files; do [ "$(dirname "$f")" = "$dir" ] && sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' "$f"; done | paste -sd'|' -)
		[ -n "$names" ] || continue
		$go test -timeout=15m -run "^($names)\$" "./$dir"
	done
}

step "vet without cgo" pure_vet
step "tests without cgo" pure_test
step "vet" full_vet
step "tests with the race detector" full_test
step "tests that the race detector makes too slow" no_race
printf 'PASS: all tests (%s s)\n' "$(($(date +%s) - began))"
