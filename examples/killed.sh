#!/bin/sh
# One key, a command that is killed half-way through being watched, and a second submission: the command starts once.
# Run it in an empty folder.
set -eu

job='echo started >> starts; until [ -e finish ]; do sleep 0.05; done; echo report > report.txt'

onestart run nightly-report --ledger ledger -- sh -c "$job" &
until onestart ledger show ledger 2> /dev/null | grep -q 'session  live'; do sleep 0.05; done
kill -9 $!
wait $! 2> /dev/null || echo "killed while the command runs"

onestart run nightly-report --ledger ledger -- sh -c "$job" || echo "exit code $?"
touch finish
until [ -s report.txt ]; do sleep 0.05; done
onestart run nightly-report --ledger ledger -- sh -c "$job" || echo "exit code $?"
onestart run nightly-report --ledger ledger -- sh -c 'echo another command' || echo "exit code $?"
echo "starts: $(wc -l < starts)"
onestart ledger show ledger
