onestart: there is no file 'release.py'
exit code 2
onestart: ledger: ./.onestart holds no ledger
onestart: ledger: ./.onestart holds no ledger
onestart: there is no file 'release.py'
onestart: ledger: ./.onestart holds no ledger
onestart: ledger: ./.onestart holds no ledger
Usage: onestart flow [OPTIONS] COMMAND [ARGS]...

  Durable flows: run or resume one, answer its questions, see how it stands.

Options:
  -h, --help  Show this message and exit.

Commands:
  answer  Answer a question that a flow is parked on; the flow goes on when it is resumed.
  resume  Go on with a flow, with the arguments that are on record.
  run     Begin a flow under this ID, or resume it; print its value as JSON.
  status  How the flows of a ledger stand; of one, its steps, its open questions, and what to...
  verify  Whether a flow's record is sound: all that is there fits together.
Usage: onestart flow run [OPTIONS] MODULE_OR_FILE:FLOW ID [JSON_ARGUMENT]...

  Begin a flow under this ID, or resume it; print its value as JSON.

  Each argument is JSON: '"a text"', 7, '{"a": 1}'. The exit code is 0 if the flow is completed, 1
  if it has failed or does not fit its record, 3 if it is parked on questions, 4 if nobody knows
  how far a step got, 75 if another driver is at it, 2 for what cannot be used.

Options:
  --ledger TEXT  Folder. [$ONESTART_LEDGER, ./.onestart]
  --lease FLOAT  Seconds that a flow stays taken when its driver dies. [30]
  -q, --quiet    Say nothing while it runs.
  --json         Print one JSON document.
  -h, --help     Show this message and exit.
