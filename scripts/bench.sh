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
echo "== runner"
bin/agentgraph bench runner
