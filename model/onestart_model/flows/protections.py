"""What keeps the promises of flows, by name. Each can be removed alone, and something must then fail."""

from onestart_model.rules import Protection

PROTECTIONS = (
    Protection("stable-ids", "A call whose causal predecessors are known takes the id that follows from them."),
    Protection("ordinal-kind", "A call whose ordinal is held by another kind is refused."),
    Protection("waits-hold", "A parked question holds its ordinal."),
    Protection("dispatches-hold", "An unfinished child flow holds its ordinal, by any record of the child."),
    Protection("marker-checked", "The completion marker is refused on an ordinal that is held."),
    Protection("spec-bound", "An id that was admitted with one spec is not admitted with another."),
    Protection("question-bound", "An answer is for the question and the recipient that it was given to."),
    Protection("hook-input-bound", "A hook's verdict is for the input that it was given on."),
    Protection("watermark", "A replayed verdict moves the counter past no held ordinal that nobody has claimed."),
    Protection(
        "watermark-of-admitted", "A verdict's watermark counts ordinals that are on record, not those declared."
    ),
    Protection("hook-calls-pass", "A replayed verdict passes over the calls that its own hook made."),
    Protection("index-at-admission", "Calls are indexed when they are admitted, so one in flight at a crash is seen."),
    Protection("effects-indexed", "Helper, MCP and plugin effects are indexed like other calls."),
    Protection("admitted-in-order", "A call is admitted after all calls that hold lower ordinals of the attempt."),
    Protection("latch-at-declaration", "After a refusal no call is made any more."),
    Protection("latch-at-start", "A call that was made before a refusal is not admitted after it."),
    Protection("latch-at-slot", "A call that waited for a worker slot is checked again when the slot is free."),
    Protection("slots-limited", "A call is carried out only when its worker has a slot for it."),
    Protection("latch-in-children", "A refusal of the root stops its child flows."),
    Protection("latch-on-activities", "After a refusal there are no subscriptions and no findings."),
    Protection("latch-on-conflict", "An admission conflict is a refusal like any other, which no catch undoes."),
    Protection(
        "in-flight-declared", "An effect in flight at a crash runs again only if its executor says that it may."
    ),
    Protection("driver-lease", "One driver leads a root; what a stale one records or starts is refused."),
    Protection("reads-on-resume-only", "The journal is read only by attempts that resume."),
)
