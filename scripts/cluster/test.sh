#!/usr/bin/env bash
# Runs the tests of runs on Kubernetes on a real cluster of three nodes, which it makes on this machine (root, Linux)
# and removes, whatever happens. Without Go's build cache the cluster's programs are built first: 8 CPU minutes.
# A machine that cannot host a cluster, or cannot fetch what it is made of, skips the tests and says why.
#
#   scripts/cluster/test.sh [FLAGS OF go test]      -short: those that continuous integration runs
set -euo pipefail
cd "$(dirname "$0")/../.."
cluster=$PWD/scripts/cluster/cluster.sh
skip() { echo "skipped: no cluster for tests on this machine: $*"; exit 0; }
part() { printf -- '-- %s (%ss)\n' "$1" "$SECONDS"; }

[ "$(uname -s)" = Linux ] || skip "it needs Linux"
[ "$(id -u)" = 0 ] || skip "its nodes are network namespaces with containers, which only root can make"
part "packages"
missing=()
for p in iproute2:ip openssl:openssl curl:curl containerd:containerd runc:runc busybox-static:busybox; do
  command -v "${p#*:}" >/dev/null || missing+=("${p%:*}")
done
[ -x /usr/lib/cni/bridge ] || missing+=(containernetworking-plugins)
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || skip "install ${missing[*]}"
  export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive # services do not start
  (apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}") >/dev/null ||
    skip "apt-get cannot install ${missing[*]}"
fi
K8S_STATE=$(mktemp -d)
export K8S_STATE PLIMSOLL_BINARY=$PWD/bin/plimsoll
trap 'part removal; $cluster down' EXIT
trap 'exit 130' INT TERM HUP
why=$($cluster possible 2>&1) || skip "$why"
part "modules"
why=$(cd scripts/cluster && GOWORK=off go list -deps ./kube 2>&1 >/dev/null) || {
  grep -qE 'dial tcp|lookup |timeout|connection re' <<<"$why" && skip "the cluster's Go modules cannot be fetched: $why"
  echo "$why" >&2
  exit 1
}
part "build"
$cluster build || skip "its programs cannot be built here"
part "cluster"
$cluster up 3 || skip "it does not come up here"
$cluster image "$PLIMSOLL_BINARY"
part "tests"
# In the background, so that a signal is heeded at once: the removal ends them.
$cluster run scripts/test.sh -count=1 -run=Cluster "$@" ./remote/kubernetes &
wait $!
