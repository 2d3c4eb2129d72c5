#!/bin/sh
# A flow that is killed while its uploads are under way, resumed, refused when its code has changed, and answered:
# every effect happens once.
# Run it in an empty folder.
set -eu

cp "$(dirname "$0")/release.py" .
flow="onestart flow"
ONESTART_LEDGER=ledger
export ONESTART_LEDGER

touch slow effects
$flow run release.py:release release-7 '"1.7.0"' --lease 5 --quiet &
until [ "$(grep -c uploaded effects)" = 2 ]; do sleep 0.05; done
kill -9 $!
wait $! 2> /dev/null || echo "killed while it uploads"
rm slow

$flow resume release.py:release release-7 --lease 5 --quiet || echo "exit code $?"
sed 's/f\.llm(.*),$/f.run(["true"]),/' release.py > changed.py
$flow resume changed.py:release release-7 --quiet || echo "exit code $?"
$flow answer release-7 human-after-18b1a512-0 yes --by anna
$flow resume release.py:release release-7 --quiet
$flow status
$flow verify release-7
sort effects | cut -d ' ' -f 1-2
