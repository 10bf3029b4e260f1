#!/bin/sh
# How fast this build is on this machine. Close other programs first.
set -eu
. "$(dirname "$0")/lib.sh"
cd "$root"

model=$(scripts/model.sh)
echo "== answers, one at a time"
bin/agentgraph bench answers --model "$model" bench/answer-workload.json
echo "== answers, eight at a time"
bin/agentgraph bench answers --model "$model" --parallel 8 bench/answer-workload.json
echo "== tools and a schema at temperature 1, 50 times"
AGENTGRAPH_TEST_MODEL=$model AGENTGRAPH_TOOL_RUNS=50 CI=true ${GO:-go} test -count=1 -timeout 30m -run TestSmallModelWithToolsAndSchema ./turn
echo "== 1,000 pending inputs"
bin/agentgraph bench engine --model "$model"
echo "== rows of docs/performance.md"
AGENTGRAPH_TEST_MODEL=$model CI=true ${GO:-go} test -count=1 -timeout 30m -run XXX -bench . -benchtime 3x ./model/local
echo "== runner"
bin/agentgraph bench runner
