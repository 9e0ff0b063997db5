#!/usr/bin/env bash
# Figures of Plimsoll's own parts, side by side with other tools in one run:
# the load generator beside k6 and wrk, the recorder, the link emulator, the page,
# simulations and kills; `bench.sh httpload`, `record` or `link`: one of the first
# three, about five minutes in all. Run it on a quiet machine; ratios are robust,
# rates are not.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.tools/bin:$PATH"

if ! command -v k6 >/dev/null; then
  echo "building k6 (for comparison) into .tools/bin"
  GOBIN="$PWD/.tools/bin" go install go.k6.io/k6@latest
fi
command -v wrk >/dev/null || echo "wrk is not installed: its column stays empty (Debian: apt-get install wrk)"

what=${1:-all}
if [[ "$what" =~ ^(all|httpload)$ ]]; then
  echo "# httpload: the load generator beside k6 and wrk, against nginx on loopback (about 2 minutes)"
  go test -run '^$' -bench BesideOthers -benchtime 1x ./httpload
fi
if [[ "$what" =~ ^(all|record)$ ]]; then
  echo "# record: 10^8 operations recorded, read back and reported: cost, disk and memory (about a minute)"
  PLIMSOLL_OPERATIONS=100000000 go test -v -count=1 -run '^TestManyOperations$' ./report
fi
if [[ "$what" =~ ^(all|link)$ ]]; then
  echo "# link: the emulator, one TCP stream, eight, and a swarm (needs root)"
  go test -run '^$' -bench 'Link|Swarm' -benchtime 1x ./testbed/link
fi
if [ "$what" = all ]; then
  echo "# page: of a run of 500 cells, its bytes and the time until its first screen is drawn and answers"
  go test -v -count=1 -run '^TestPageOfManyCells$' ./report/page
  echo "# of 1,000 simulated runs: how often each rule is false where nothing is wrong, and how often intervals cover the truth"
  PLIMSOLL_SIMULATIONS=1000 go test -v -count=1 -timeout 30m -run '^Test(NullRuns|OverallCovers|CostTableCovers|CellsCover)$' ./analysis
  PLIMSOLL_SIMULATIONS=2000 go test -count=1 -timeout 30m ./stats
  echo "# kills: recorders and testbeds that are killed 50 times; load tests on S3 and Tahoe-LAFS that are killed 50 times and resumed"
  PLIMSOLL_TEST_KILLS=50 go test -v -count=1 -timeout 30m -run '^Test(Kill9.*|Killed.*)$' ./record ./testbed
  PLIMSOLL_TEST_KILLS=50 go test -v -count=1 -timeout 30m -run '^TestUploadKilled(S3|Tahoe)$' ./cmd/plimsoll
fi
