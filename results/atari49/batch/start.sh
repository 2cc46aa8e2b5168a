#!/usr/bin/env bash
# Runs one batch on a machine that is lent for half an hour: start.sh BUNDLE SEED PART GAME...
# BUNDLE/site has the packages that the machine lacks, BUNDLE/atari49 the tagged tree. Everything lies in the home folder.
# `poll.py` reads the progress meanwhile. At the end, logs.tar.gz has the run folders without weights.
set -u
bundle=$1 seed=$2 part=$3
shift 3
cd "$HOME" || exit 1
export PYTHONPATH=$bundle/site:$bundle/atari49/src PYTHONUNBUFFERED=1
date +%s > began
nvidia-cuda-mps-control -d
python3 -m gramian study run atari49 --games "$@" --seeds "$seed" --out "runs/atari49/$part" --device cuda \
  --workers $((3 * $#)) --population 1 --no-checkpoint-replay --rate 1000 --stall-min 0 --retries 0 > study.log 2>&1
date +%s > ended
tar czf logs.tmp --exclude='*.safetensors' began ended study.log runs && mv logs.tmp logs.tar.gz
