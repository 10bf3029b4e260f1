# Shared by the scripts here: where things are cached, and how they speak.
# Sourced, not run.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/agentgraph
root=$(cd "$(dirname "$0")/.." && pwd)

say() { printf '%s\n' "agentgraph: $*" >&2; }
die() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# sha256 of stdin, or of the named files, hex only.
if have sha256sum; then
	sha256() { sha256sum "$@" | cut -d' ' -f1; }
else
	sha256() { shasum -a 256 "$@" | cut -d' ' -f1; }
fi

# with_lock FILE CMD… runs CMD while no other script holds FILE. The lock is
# the kernel's where flock(1) exists, so it goes with a killed build.
with_lock() {
	lock=$1
	shift
	mkdir -p "$(dirname "$lock")"
	if have flock; then
		flock "$lock" "$@"
	else
		until mkdir "$lock.d" 2>/dev/null; do sleep 1; done
		trap 'rmdir "$lock.d"' EXIT
		"$@"
	fi
}
