#!/bin/sh
# The main job, shown: a scratch copy of examples/reviews is answered by the
# small model (or MODEL=path.gguf), and the answers are printed.
set -eu
. "$(dirname "$0")/lib.sh"
cd "$root"

model=$(scripts/model.sh)
dir=$(mktemp -d "${TMPDIR:-/tmp}/agentgraph-demo-XXXXXX")
cp -R examples/reviews/. "$dir"
AGENTGRAPH_MODEL=$model
export AGENTGRAPH_MODEL

echo "== three reviews, one agent, one schema: $dir"
(cd "$dir" && find agents -type f | LC_ALL=C sort)
echo "== agentgraph run --once $dir"
bin/agentgraph run --once "$dir"
echo "== the answers"
for f in "$dir"/agents/rater/output/*; do
	input=$(bin/agentgraph show "$f" | awk '$1 == "input" {print $2}')
	printf '%s\n  %s\n%s\n  %s\n' "$input" "$(cat "$dir/$input")" "${f#"$dir/"}" "$(cat "$f")"
done
echo "== done: put a file into $dir/agents/rater/input and run it again"
