#!/usr/bin/env bash
# Runs the tests of runs on Kubernetes on a real cluster of three nodes, which it makes on this machine (root, Linux) and
# removes. The first time, the cluster's programs are built: 11 CPU minutes.
#
#   scripts/cluster/test.sh [ARGUMENTS OF go test]
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "a cluster of tests needs root: its nodes are network namespaces with containers" >&2; exit 1; }
missing=()
for p in iproute2:ip openssl:openssl containerd:containerd runc:runc busybox-static:busybox; do command -v "${p#*:}" >/dev/null || missing+=("${p%:*}"); done
[ -x /usr/lib/cni/bridge ] || missing+=(containernetworking-plugins)
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || { echo "install ${missing[*]}" >&2; exit 1; }
  apt-get update -q >/dev/null
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
fi
K8S_STATE=$(mktemp -d)
export K8S_STATE PLIMSOLL_BINARY=$PWD/bin/plimsoll
cluster=scripts/cluster/cluster.sh
trap '$cluster down' EXIT
$cluster build
$cluster up 3
$cluster image "$PLIMSOLL_BINARY"
$cluster run go test -count=1 -timeout 30m ./remote/kubernetes -run Cluster "$@"
