"""The screen is in `onestart_report.screen`, for proofs and conformance alike: import it from there."""

from onestart_report.screen import Screen as Screen
