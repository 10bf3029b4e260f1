#!/bin/sh
# The tests that let programs in Python and TypeScript use agentgraph, called
# by make test-clients with CGO_LDFLAGS set. They are a part of make test; the
# last line says PASS or FAIL.
set -eu
. "$(dirname "$0")/lib.sh"
cd "$root"

AGENTGRAPH_TEST_MODEL=$(MODEL= scripts/model.sh)
export AGENTGRAPH_TEST_MODEL
# A test that needs a client fails without it, it never skips.
CI=true
export CI
unset AGENTGRAPH_MODEL || true

# Only the packages that have such tests are built.
packages=$(grep -rl --include='*_test.go' '^func TestClients' . | while read -r f; do dirname "$f"; done | sort -u)

out=$(mktemp)
trap 'rm -f "$out"' EXIT
if ! ${GO:-go} test -count=1 -shuffle=on -timeout=20m -v -run '^TestClients' $packages >"$out" 2>&1; then
	cat "$out"
	echo "FAIL: clients"
	exit 1
fi
grep -E '^(--- |ok )' "$out" | grep -v 'no tests to run' || true
# Without one test that ran, nothing is shown.
grep -q '^--- PASS: TestClients' "$out" || die "no test of a client ran"
echo "PASS: clients"
