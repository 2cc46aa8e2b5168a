#!/usr/bin/env bash
# Runs blocks, games of one seed, on a machine with one GPU: start.sh BUNDLE SEED GAME...
# BUNDLE/site has the packages that the machine lacks. Everything lies in $HOME/runs/STUDY. At the end NAME.tar.gz has the
# run folders without weights; it is put into $OUT too, where that is a folder. `poll.py` reads the progress meanwhile.
#   STUDY      the study, decorrelation
#   PER_GAME   processes for each game, 2; all run at once, with at most RUNS runs each, 15
#   MINUTES    end after so many; what is not done then is not kept
#   DEVICE     cuda
set -eu
bundle=$(cd "${1:?usage: start.sh BUNDLE SEED GAME...}" && pwd) seed=${2:?a seed} && shift 2
study=${STUDY:-decorrelation} device=${DEVICE:-cuda}
source=$(cd "$(dirname "$0")/../../.." && pwd)
name=s$seed-$(IFS=-; echo "${*#minatar/}")
mkdir -p "$HOME/runs/$study" && cd "$HOME/runs/$study"
export PYTHONPATH=$source/src:$bundle/site PYTHONUNBUFFERED=1
if [ "$device" = cuda ]; then nvidia-cuda-mps-control -d || true; fi
date +%s > "$name.began"
python3 -m gramian study run "$study" --games "$@" --seeds "$seed" --out "$name" --device "$device" \
  --workers $((${PER_GAME:-2} * $#)) --population "${RUNS:-15}" --no-checkpoint-replay --rate 1000 --stall-min 0 --retries 0 \
  ${MINUTES:+--within-min "$MINUTES"} > "$name.log" 2>&1 || echo "not all runs are done" | tee -a "$name.log"
date +%s > "$name.ended"
tar czf "$name.tmp" --exclude='*.safetensors' "$name" "$name.began" "$name.ended" "$name.log"
mv "$name.tmp" "$name.tar.gz"
if [ -d "${OUT:-}" ]; then cp "$name.tar.gz" "$OUT"; fi
tail -n 3 "$name.log"
echo "$name: $(($(cat "$name.ended") - $(cat "$name.began"))) s"
