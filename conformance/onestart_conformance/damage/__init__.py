"""Record damage: what can become of bytes that were recorded, and what the library makes of it.

`grammar` is what can happen, `medium` what it happens to: lines on a simulated disk or in a folder (`jsonl`), rows and
pages (`rows`, `sqlite`, `postgres`). `prepared` is the ledger that is damaged, `trial` what is asked of the
library, `oracles` who judges. `systematic` takes every damage in turn, `drawn` two together, `campaign` all by the
profile. `limits` shows what nobody can notice, `policy` makes the page on read health. `drives` is the damage that the
drives beside the model make.
"""
