"""The published observations of the receipt-corruption experiment, each as a scenario that is played on the library.

Every row is played twice: as published, with what that experiment had in place of ours, when all that was observed has
to come out the same; and as shipped, when the promises have to hold.
"""

from onestart_conformance.scenarios.bench import AS_SHIPPED, Bench, Equipment, Layers
from onestart_conformance.scenarios.catalog import SCENARIOS, run_all
from onestart_conformance.scenarios.promises import Shipped
from onestart_conformance.scenarios.row import Row, Scenario, differences, run

__all__ = [
    "AS_SHIPPED",
    "SCENARIOS",
    "Bench",
    "Equipment",
    "Layers",
    "Row",
    "Scenario",
    "Shipped",
    "differences",
    "run",
    "run_all",
]
