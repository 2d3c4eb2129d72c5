"""What keeps the promises, by name. Each can be removed alone, and something must then fail."""

from onestart_model.rules import Protection

PROTECTIONS = (
    Protection("fingerprint", "A recorded result answers only the command that the key is bound to."),
    Protection("approval-digest", "The callback is entered only with a command whose own digest was approved."),
    Protection("revision-in-force", "The callback is entered only if governance confirms the expected revision."),
    Protection("refusal-before-answer", "A refusal is in the attempt record before the caller hears of it."),
    Protection("result-recorded-once", "A result is recorded only where none is."),
    Protection("degraded-read-reported", "Every answer carries the health of the records that were read for it."),
    Protection("damage-is-not-absence", "A damaged attempt record is not read as if there were none."),
    Protection("notes-are-evidence", "A noted intent counts, even if no attempt record shows it."),
    Protection("results-are-evidence", "A completed receipt counts, even if no attempt record shows an end."),
    Protection(
        "one-lease-per-task",
        "A lease is taken only where the record is legible and names nobody, never from a live holder.",
    ),
    Protection("token-per-acquisition", "Every acquisition of a lease gets a token of its own, not its holder's name."),
    Protection("task-serial", "A start is intended only if no other key of the task may be executing."),
    Protection("fencing-token", "Intents, notes and sessions are written only under the lease's current token."),
    Protection("renewal-fenced", "A lease is renewed only by the process that still holds it."),
    Protection("intent-before-start", "No start without a recorded intent."),
    Protection("intent-noted", "No start before a second store has noted the intent."),
    Protection("intent-stands", "An intent is confirmed only while its attempt record still shows it."),
    Protection("ask-before-restart", "A key in doubt starts again only after the executor said it never started."),
    Protection("lookup-bars-older-starts", "An executor that has been asked remembers the token of who asked."),
    Protection("executor-fence", "The executor refuses a start under a token older than one it has answered to."),
    Protection("reconcile-asks-executor", "An attempt is ended only when the executor no longer runs it."),
    Protection("operator-looks-first", "An operator settles a key only when nothing of it runs or is about to."),
)
