#!/bin/sh
# What make check runs: everything that needs no test run but can be wrong.
set -eu
. "$(dirname "$0")/lib.sh"
cd "$root"

go=${GO:-go}
bad=$(gofmt -l $(find . -name '*.go' -not -path './native/*' -not -path './node_modules/*'))
[ -z "$bad" ] || die "gofmt -w these files: $bad"
CGO_ENABLED=0 $go vet ./...
$go vet ./...
$go test -count=1 -run 'TestArrow|TestUnsafe|TestPackageComments' .

# Generated files are as the generators write them.
if git rev-parse HEAD >/dev/null 2>&1; then
	before=$(git status --porcelain; git diff | sha256)
	$go generate ./...
	after=$(git status --porcelain; git diff | sha256)
	[ "$before" = "$after" ] || { git status --short >&2; die "make generate changed files; commit what it writes"; }
fi
for f in scripts/*.sh .ci/run; do sh -n "$f" || bash -n "$f"; done
if have cargo && cargo fmt --version >/dev/null 2>&1; then
	(cd native && cargo fmt --check)
else
	say "cargo fmt is not there; Rust formatting was not checked"
fi
echo "PASS: check"
