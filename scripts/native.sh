#!/bin/sh
# Builds the native library once per content and machine and links native/lib
# to it. Prints the folder that holds the archive.
#
# An archive is built for this CPU, so the key names the CPU's features too:
# one built for another CPU would die with an illegal instruction.
set -eu
. "$(dirname "$0")/lib.sh"

crate=$root/native
RUSTFLAGS=${RUSTFLAGS:--C target-cpu=native}
export RUSTFLAGS

machine() {
	rustc -vV
	printf '%s\n' "$RUSTFLAGS"
	uname -sm
	# gcc's -march=native looks at features that rustc does not name.
	rustc --print cfg $RUSTFLAGS | grep target_feature || true
	grep -m1 -E '^(flags|Features)' /proc/cpuinfo 2>/dev/null || true
}

# build KEY DEPKEY: runs under the lock.
build() {
	dest=$cache/native/$1
	[ -f "$dest/libagentgraph_native.a" ] && return 0
	"$root/scripts/deps.sh" native
	# Keyed by what the crates are built from, so that a change of our own
	# Rust rebuilds our crate alone.
	target=$cache/native/build/$2
	say "building the native library (the first time takes minutes) in $target"
	start=$(date +%s)
	(cd "$crate" && CARGO_TARGET_DIR=$target cargo build --release --locked) >&2 ||
		die "the native library was not built; the lines above say why"
	tmp=$(mktemp -d "$cache/native/.tmp-XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	cp "$target/release/libagentgraph_native.a" "$tmp/"
	{ date -u; machine; } >"$tmp/built-for.txt"
	chmod 755 "$tmp"
	mv "$tmp" "$dest"
	# cmake's objects are in the archive; cargo does not look at them again.
	rm -rf "$target"/release/build/llama-cpp-sys-2-*/out/build "$target/release/incremental"
	rm -f "$target"/release/deps/libagentgraph_native-*.a "$target/release/libagentgraph_native.a"
	# Archives of revisions that nobody used for long are cheap to build again.
	ls -dt "$cache"/native/*/ | grep -E '/[0-9a-f]{32}/$' | tail -n +9 | while read -r old; do rm -rf "$old"; done
	say "native library built in $(($(date +%s) - start)) s: $dest"
}

if [ "${1:-}" = --build ]; then
	build "$2" "$3"
	exit
fi

have rustc || "$root/scripts/deps.sh" native
host=$(machine)
deps=$({ printf '%s\n' "$host"; cat "$crate/Cargo.lock" "$crate/.cargo/config.toml" "$crate"/compat/*; } | sha256 | cut -c1-32)
key=$({
	printf '%s\n' "$deps"
	cd "$crate"
	cat Cargo.toml
	find . \( -path ./lib -o -path ./target \) -prune -o -type f \( -name '*.rs' -o -name '*.h' -o -name '*.c' -o -name '*.cpp' \) -print |
		LC_ALL=C sort | while read -r f; do printf '%s %s\n' "$f" "$(sha256 "$f")"; done
} | sha256 | cut -c1-32)

dest=$cache/native/$key
[ -f "$dest/libagentgraph_native.a" ] || with_lock "$cache/native/lock" "$0" --build "$key" "$deps"

# native/lib is a link that is replaced in one step; a folder somebody made
# by hand is left alone when it is not ours to replace.
link=$crate/lib
if [ "$(readlink "$link" 2>/dev/null || true)" != "$dest" ]; then
	if [ -d "$link" ] && [ ! -L "$link" ]; then
		rm -f "$link/libagentgraph_native.a"
		rmdir "$link" || die "native/lib holds files that are not ours; move them away"
	fi
	ln -s "$dest" "$link.$$"
	mv -T "$link.$$" "$link" 2>/dev/null || { rm -f "$link"; mv "$link.$$" "$link"; }
fi
touch "$dest"
printf '%s\n' "$dest"
