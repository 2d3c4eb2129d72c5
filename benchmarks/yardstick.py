"""The yardstick in onestart's rule language, searched without symmetry: `python yardstick.py K W E`."""

import sys

from onestart_model import Instance
from onestart_model.yardstick import YARDSTICK
from onestart_proofs.memory import keep_freed_memory
from onestart_proofs.search import explore

keep_freed_memory()
keys, workers, expiries = map(int, sys.argv[1:4])
instance = Instance.of(YARDSTICK, sizes={"Key": keys, "Worker": workers}, limits={"expiries": expiries})
found = explore(instance, symmetry="symmetry" in sys.argv)
assert found.complete
assert not found.sightings
print(found.states, found.generated, found.levels)
