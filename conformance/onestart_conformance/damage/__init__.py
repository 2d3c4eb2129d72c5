"""Record damage: what can become of bytes that were recorded, and what the library makes of it.

`grammar` is what can happen, `medium` what it happens to; `jsonl` is the medium of the ledger of JSON lines. `prepared`
is the ledger that is damaged, `trial` what is then asked of the library, `oracles` who judges. `systematic` takes every
damage in turn, `limits` shows what nobody can detect, `policy` makes the table of read health. `drives` is the damage
that the drives beside the model make.
"""
