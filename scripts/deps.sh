#!/bin/sh
# Checks for what a build or a test needs: deps.sh go|native|model|clients…
# Debian packages that are missing are installed when this user may (root, or
# sudo without a password); otherwise the exact command is printed.
# AGENTGRAPH_NO_APT=1 only prints it.
set -eu
. "$(dirname "$0")/lib.sh"

packages=
advice=

need() { # need COMMAND PACKAGE
	have "$1" || packages="$packages $2"
}

# at_least WANT HAVE: dotted numbers.
at_least() {
	[ "$(printf '%s\n%s\n' "$1" "$2" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)" = "$1" ]
}

# bindgen loads libclang and reads the compiler headers that come with it.
have_libclang() {
	[ -z "${LIBCLANG_PATH:-}" ] || return 0
	for lib in /usr/lib/llvm-*/lib /usr/lib /usr/lib64 /usr/local/lib /usr/lib/*-linux-gnu \
		/opt/homebrew/opt/llvm/lib /usr/local/opt/llvm/lib /Library/Developer/CommandLineTools/usr/lib; do
		for f in "$lib"/libclang.so* "$lib"/libclang-*.so* "$lib"/libclang.dylib; do
			[ -e "$f" ] || continue
			for h in "$lib"/clang/*/include/stddef.h /usr/lib/clang/*/include/stddef.h; do
				[ -e "$h" ] && return 0
			done
		done
	done
	return 1
}

for part in "$@"; do
	case $part in
	go)
		if ! have go; then
			advice="$advice
  Go 1.26 or newer is missing: https://go.dev/doc/install"
		fi
		need cc gcc
		;;
	native)
		want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/native/Cargo.toml")
		if ! have cargo || ! have rustc; then
			advice="$advice
  Rust $want or newer is missing: https://rustup.rs"
		else
			got=$(rustc --version | cut -d' ' -f2 | cut -d- -f1)
			at_least "$want" "$got" || advice="$advice
  Rust $got is too old, $want or newer is needed: rustup update"
		fi
		need cc gcc
		need c++ g++
		need cmake cmake
		have_libclang || packages="$packages libclang-dev"
		;;
	model)
		need python3 python3-pip
		if have python3 && ! python3 -m pip --version >/dev/null 2>&1; then
			packages="$packages python3-pip"
		fi
		;;
	llama-server)
		need cc gcc
		need c++ g++
		need cmake cmake
		;;
	clients)
		need python3 python3
		if ! have python3 || ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
			packages="$packages python3-venv"
		fi
		need node nodejs
		need npm npm
		;;
	*) die "deps.sh: '$part' is none of go, native, model, clients" ;;
	esac
done

# Drop what is named twice.
packages=$(printf '%s\n' $packages | sort -u | tr '\n' ' ')
packages=${packages% }

if [ -n "$packages" ]; then
	sudo=
	[ "$(id -u)" = 0 ] || sudo='sudo -n'
	if [ -z "${AGENTGRAPH_NO_APT:-}" ] && have apt-get && { [ -z "$sudo" ] || { have sudo && sudo -n true 2>/dev/null; }; }; then
		say "installing what is missing: $packages"
		$sudo apt-get update -q >&2 || say "apt-get update failed; trying with the lists there are"
		$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages >&2 ||
			die "apt-get could not install: $packages"
	elif have apt-get; then
		advice="$advice
  sudo apt-get update && sudo apt-get install -y --no-install-recommends $packages"
	else
		advice="$advice
  install these (Debian's names): $packages"
	fi
fi

if [ -n "$advice" ]; then
	die "something is missing; run this, then make again:$advice"
fi
