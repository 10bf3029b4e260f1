#!/bin/sh
# The same answers on llama-cpp-python and mistral.rs, in turn with ours, three
# rounds. The peers are installed into a folder of the cache (llama-cpp-python
# compiles for minutes the first time).
set -eu
. "$(dirname "$0")/lib.sh"
cd "$root"

"$root/scripts/deps.sh" model
have cmake || die "cmake is missing; llama-cpp-python compiles with it"
model=$(scripts/model.sh)
peers=$cache/peers
work=bench/answer-workload.json
mkdir -p "$peers"

venv() { # venv NAME PACKAGES…
	name=$1
	shift
	[ -f "$peers/$name/ready" ] && return 0
	rm -rf "${peers:?}/$name"
	python3 -m venv "$peers/$name"
	# Built by GCC 12 on a CPU with AMX, llama-cpp-python dies with an illegal
	# instruction; the header mends that and, with the define, nothing else. A
	# wheel that pip has kept may lack it.
	CPLUS_INCLUDE_PATH=$root/native/compat CXXFLAGS=-DAGENTGRAPH_TILES_ONLY \
		CMAKE_ARGS="-DGGML_NATIVE=ON" "$peers/$name/bin/pip" install --quiet --no-cache-dir --no-binary llama-cpp-python "$@" && touch "$peers/$name/ready"
}
venv llamacpp llama-cpp-python==0.3.36 jsonschema
venv mistralrs mistralrs==0.9.5 jsonschema || say "mistral.rs cannot be installed here; it is left out"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for round in 1 2 3; do
	say "round $round of 3"
	bin/agentgraph bench answers --json --model "$model" "$work" | tail -n 1 >>"$out/agentgraph"
	bin/agentgraph bench answers --json --parallel 8 --model "$model" "$work" | tail -n 1 >>"$out/agentgraph-8"
	"$peers/llamacpp/bin/python" bench/peers/answers_llamacpp.py "$model" "$work" 2>/dev/null | tail -n 1 >>"$out/llama-cpp-python"
	[ ! -f "$peers/mistralrs/ready" ] ||
		"$peers/mistralrs/bin/python" bench/peers/answers_mistralrs.py "$model" "$work" 2>/dev/null | tail -n 1 >>"$out/mistral.rs"
done
python3 - "$out" <<'PY'
import json, os, statistics, sys

folder = sys.argv[1]
median, valid = {}, {}
for name in sorted(os.listdir(folder)):
    runs = [json.loads(line) for line in open(os.path.join(folder, name)) if line.strip()]
    median[name] = statistics.median(r["answers_per_second"] for r in runs)
    valid[name] = min(r["valid"] for r in runs)
for name, speed in median.items():
    ratios = ", ".join(f"{median[ours] / speed:.2f}x {ours}" for ours in ("agentgraph", "agentgraph-8") if name not in median or not name.startswith("agentgraph"))
    print(f"{name:18} {speed:7.3f} answers/s  {valid[name]:2} valid  {ratios}")
PY

echo "== rows of docs/performance.md that need no peer"
AGENTGRAPH_TEST_MODEL=$model CI=true ${GO:-go} test -count=1 -timeout 30m -run XXX -bench 'Step|Drafts|SecondTurn|Constrained|Open' -benchtime 5x ./model/local
AGENTGRAPH_TEST_MODEL=$model CI=true ${GO:-go} test -count=1 -run XXX -bench Decode -benchtime 80x ./model/local
bin/agentgraph bench engine --model "$model"
