#!/bin/bash
# A real Kubernetes on one machine, for tests:
#
#   cluster.sh build                 the programs, once (no container engine, no downloads beyond Go modules)
#   cluster.sh up [N]                N nodes (3), ready for pods
#   cluster.sh image PROGRAM         a container image of a static plimsoll on all nodes: localhost/plimsoll:test
#   cluster.sh bundle NAME FILE…     an image on all nodes of programs and directories of this machine and the
#                                    libraries that they load, in their places: FILE or FILE=PLACE
#   cluster.sh run COMMAND…          in the cluster's network, with KUBECONFIG set
#   cluster.sh signal NAME SIGNAL    to apiserver, etcd, controllers, scheduler, kubeletN or containerdN
#   cluster.sh lose N                kills all that runs on a node, for good
#   cluster.sh down                  all of it away, whatever state it is in
#
# K8S_BIN is where the programs are (default: .tools/cluster of the project), K8S_STATE where the cluster lives.
# Needs root, 2 CPUs, 1.3 GB and Debian's iproute2 openssl curl containerd runc containernetworking-plugins
# busybox-static.
# Everything runs in a PID, a mount and a network namespace of its own: ending their first process ends all of it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=${K8S_BIN:-$here/../../.tools/cluster} state=${K8S_STATE:-${TMPDIR:-/tmp}/k8s-cluster}
export KUBECONFIG=$state/kubeconfig PLIMSOLL_CLUSTER=$state
api=10.99.0.1 version=v1.34.4

die() { echo "cluster.sh: $*" >&2; exit 1; }
init() { cat "$state/init" 2>/dev/null || echo 0; }
alive() { [ -d "/proc/$(init)" ] && grep -qF "$state" "/proc/$(init)/cmdline" 2>/dev/null; }
await() {
	local what=$1 n=$2
	shift 2
	for _ in $(seq "$((n * 10))"); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	die "$what: not after $n s; see $state/log"
}

# Without inlining and debugging information it is compiled in two thirds of the time, and fast enough.
build() {
	local x=k8s.io/component-base/version flags="-s -w -X k8s.io/client-go/pkg/version.gitVersion=$version"
	flags="$flags -X $x.gitVersion=$version -X $x.gitMajor=1 -X $x.gitMinor=34 -X $x.gitTreeState=clean"
	cd "$here" && GOWORK=off CGO_ENABLED=0 go build -buildvcs=false -trimpath -gcflags='all=-l -dwarf=false' \
		-ldflags "$flags" -o "$bin/kube" ./kube
}

# possible says what this machine does not give to a cluster.
possible() {
	local group=/sys/fs/cgroup d=$state/possible
	[ ! -d $group/memory ] || group=$group/memory
	unshare --mount --pid --net --fork true || die "no namespaces"
	mkdir "$group/plimsoll-$$" || die "no control groups"
	rmdir "$group/plimsoll-$$"
	mkdir -p "$d"/{lower,upper,work,merged}
	unshare --mount mount -t overlay -o "lowerdir=$d/lower,upperdir=$d/upper,workdir=$d/work" none "$d/merged" ||
		die "no overlay file system in $state"
	[ "$(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo)" -ge 1500000 ] ||
		die "less than 1.5 GB of memory is free"
	[ "$(df -m --output=avail "$state" | tail -n 1)" -ge 3000 ] || die "less than 3 GB is free in $state"
}

up() {
	local n=${1:-3} t
	for t in unshare nsenter ip openssl curl containerd runc ctr busybox; do
		command -v $t >/dev/null || die "$t is missing; $0 says which packages are needed"
	done
	[ -x "$bin/kube" ] || die "$bin/kube is missing: cluster.sh build"
	! alive || die "there is one already in $state"
	down
	mkdir -p "$state"/{log,pki,etcd,pid}
	setsid unshare --mount --pid --net --fork --kill-child --mount-proc "$0" inside "$n" "$state" \
		</dev/null >"$state/log/init" 2>&1 &
	await "the first process" 60 grep -q . "/proc/$!/task/$!/children"
	tr -d ' ' <"/proc/$!/task/$!/children" >"$state/init"
	await "the control plane" 600 settled "$state/up"
	alive || die "its first process has ended: $(tail -n 3 "$state/log/init")"
	await "$n nodes" 600 ready "$n"
}
settled() { [ -e "$1" ] || ! alive; }
ready() {
	[ "$(run curl -sfK "$state/pki/curl" "https://$api:6443/api/v1/nodes" |
		grep -o '"type":"Ready","status":"True"' | wc -l)" = "$1" ] &&
		run curl -sfK "$state/pki/curl" "https://$api:6443/api/v1/namespaces/default/serviceaccounts/default"
}

# inside is the first process of the cluster's namespaces.
inside() {
	local n=$1 d i p=$state/pki
	for d in /run/netns /run/containerd /var/lib/cni /var/log/containers; do mkdir -p $d && mount -t tmpfs none $d; done
	sysctl -qw net.ipv4.ip_forward=1
	ip link set lo up && ip link add nodes type bridge && ip addr add $api/24 dev nodes && ip link set nodes up
	ip route add default via $api dev nodes # kubelet and API server look for one
	keys "$n"
	start etcd "$bin/kube" etcd "$state/etcd"
	start apiserver "$bin/kube" apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address=0.0.0.0 \
		--advertise-address=$api --service-cluster-ip-range=10.96.0.0/16 --kubelet-preferred-address-types=InternalIP \
		--tls-cert-file="$p/api.crt" --tls-private-key-file="$p/api.key" --cert-dir="$p" \
		--token-auth-file="$p/tokens.csv" --authorization-mode=Node,RBAC --service-account-key-file="$p/sa.key" \
		--service-account-signing-key-file="$p/sa.key" --service-account-issuer=https://kubernetes.default.svc \
		--endpoint-reconciler-type=none --allow-privileged=true
	for i in $(seq "$n"); do network "$i" "$n"; done
	for i in $(seq "$n"); do engine "$i" & done
	await "the API server" 300 curl -sfK "$p/curl" "https://$api:6443/readyz"
	start controllers "$bin/kube" controllers --kubeconfig="$KUBECONFIG" --bind-address=127.0.0.1 --leader-elect=false \
		--service-account-private-key-file="$p/sa.key" --root-ca-file="$p/ca.crt"
	start scheduler "$bin/kube" scheduler --kubeconfig="$KUBECONFIG" --bind-address=127.0.0.1 --leader-elect=false
	for i in $(seq "$n"); do
		d=$state/node$i
		await "the container engine of node$i" 300 test -e "$d/up"
		start "kubelet$i" on "$i" "$bin/kube" kubelet --config="$d/kubelet.yaml" --kubeconfig="$d/kubeconfig" \
			--root-dir="$d/kubelet" --cert-dir="$d/pki" --hostname-override="node$i" \
			--node-ip="10.99.0.$((i + 1))" --node-labels="topology.kubernetes.io/zone=zone$i"
	done
	touch "$state/up"
	while :; do sleep 3600 & wait $!; done
}
start() { local name=$1; shift; "$@" >"$state/log/$name" 2>&1 & echo $! >"$state/pid/$name"; }
on() { local node=$1; shift; nsenter --net="/run/netns/node$node" "$@"; } # `ip netns exec` hides the control groups

keys() {
	local i p=$state/pki token=$(openssl rand -hex 16)
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=ca \
		-keyout $p/ca.key -out $p/ca.crt
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=api -keyout $p/api.key |
		openssl x509 -req -days 30 -CA $p/ca.crt -CAkey $p/ca.key -CAcreateserial -out $p/api.crt \
			-extfile <(echo "subjectAltName=IP:$api,IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes.default.svc")
	openssl genrsa -out $p/sa.key 2048
	echo "$token,admin,admin,\"system:masters\"" >$p/tokens.csv
	kubeconfig "$token" >"$KUBECONFIG"
	printf '%s = "%s"\n' header "Authorization: Bearer $token" cacert "$p/ca.crt" noproxy '*' max-time 30 \
		user-agent plimsoll >"$p/curl" # the API server indents its answers to curl
	for i in $(seq "$1"); do
		mkdir -p "$state/node$i"/{cri,cni,kubelet,logs}
		token=$(openssl rand -hex 16)
		echo "$token,system:node:node$i,node$i,\"system:nodes\"" >>$p/tokens.csv
		kubeconfig "$token" >"$state/node$i/kubeconfig"
	done
}
kubeconfig() {
	cat <<-E
	apiVersion: v1
	kind: Config
	clusters: [{name: test, cluster: {server: "https://$api:6443", certificate-authority: "$state/pki/ca.crt"}}]
	users: [{name: test, user: {token: "$1"}}]
	contexts: [{name: test, context: {cluster: test, user: test}}]
	current-context: test
	E
}

# network gives a node its namespace, a cable to the bridge and routes to the pods of the others.
network() {
	local i=$1 j
	ip netns add "node$i"
	ip link add "n$i" type veth peer name eth0 netns "node$i" && ip link set "n$i" master nodes up
	on "$i" ip link set lo up; on "$i" ip link set eth0 up
	on "$i" ip addr add "10.99.0.$((i + 1))/24" dev eth0
	on "$i" ip route add default via $api; on "$i" sysctl -qw net.ipv4.ip_forward=1
	ip route add "10.244.$i.0/24" via "10.99.0.$((i + 1))"
	for j in $(seq "$2"); do
		[ "$j" = "$i" ] || on "$i" ip route add "10.244.$j.0/24" via "10.99.0.$((j + 1))"
	done
}

# engine starts a node's containerd and gives it the image of sandboxes.
engine() {
	local i=$1 d=$state/node$1
	cat >"$d/containerd.toml" <<-E
	version = 2
	root = "$d/cri/root"
	state = "$d/cri/state"
	[grpc]
	  address = "$d/cri.sock"
	[plugins."io.containerd.grpc.v1.cri"]
	  sandbox_image = "localhost/sandbox:1"
	  restrict_oom_score_adj = true # who may not lower it (CAP_SYS_RESOURCE) need not
	  [plugins."io.containerd.grpc.v1.cri".cni]
	    bin_dir = "/usr/lib/cni"
	    conf_dir = "$d/cni"
	E
	cat >"$d/cni/10-pods.conflist" <<-E
	{"cniVersion": "1.0.0", "name": "pods", "plugins": [
	 {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false, "hairpinMode": true,
	  "ipam": {"type": "host-local", "dataDir": "$d/ipam",
	   "ranges": [[{"subnet": "10.244.$i.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
	 {"type": "portmap", "capabilities": {"portMappings": true}}]}
	E
	cat >"$d/kubelet.yaml" <<-E
	apiVersion: kubelet.config.k8s.io/v1beta1
	kind: KubeletConfiguration
	address: 10.99.0.$((i + 1))
	authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
	authorization: {mode: AlwaysAllow}
	containerRuntimeEndpoint: unix://$d/cri.sock
	cgroupDriver: cgroupfs
	cgroupsPerQOS: false
	enforceNodeAllocatable: []
	failCgroupV1: false
	failSwapOn: false
	resolvConf: ""
	podLogsDir: $d/logs
	makeIPTablesUtilChains: false
	imageGCHighThresholdPercent: 100 # 100 is never: images are not pulled again
	evictionHard: {memory.available: 100Mi, nodefs.available: 100Mi, imagefs.available: 100Mi}
	E
	start "containerd$i" on "$i" containerd --config "$d/containerd.toml"
	await "containerd of node$i" 300 ctr -a "$d/cri.sock" version
	sandbox | ctr -a "$d/cri.sock" -n k8s.io images import - >/dev/null
	touch "$d/up"
}

# sandbox writes the image of what keeps a pod's namespaces, and waits for processes that have lost their parents.
sandbox() {
	local d
	d=$(mktemp -d)
	mkdir -p "$d/root/bin" && cp "$(command -v busybox)" "$d/root/bin/"
	tar -C "$d/root" --owner=0 --group=0 -cf "$d/layer.tar" .
	archive "$d" localhost/sandbox:1 \
		'"Entrypoint": ["/bin/busybox", "sh", "-c", "trap exit TERM; while :; do sleep 3600 & wait; done"]'
	rm -rf "$d"
}

# archive writes an image with the one layer that is in a directory.
archive() {
	local d=$1 name=$2 config=$3
	cat >"$d/config.json" <<-E
	{"architecture": "$(go env GOARCH)", "os": "linux", "config": {$config},
	 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sha256sum "$d/layer.tar" | cut -d' ' -f1)"]}}
	E
	echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$name\"], \"Layers\": [\"layer.tar\"]}]" >"$d/manifest.json"
	tar -C "$d" -cf - manifest.json config.json layer.tar
}

bundle() {
	local name=$1 d file
	shift
	d=$(mktemp -d -p "$state")
	mkdir -p "$d"/root/etc "$d"/root/usr/{bin,sbin,lib,lib64}
	echo root:x:0:0::/: >"$d/root/etc/passwd" # nginx looks for its user
	echo root:x:0: >"$d/root/etc/group"
	find /bin /sbin /lib /lib64 -maxdepth 0 -type l -exec cp -a {} "$d/root/" \; # to these places
	for file; do
		mkdir -p "$d/root/$(dirname "${file#*=}")"
		cp -a "${file%=*}" "$d/root/${file#*=}"
	done
	# What is not dynamic fails; what lies beside a program is there already.
	(find "$d/root" -type f \( -perm /111 -o -name '*.so*' \) -exec ldd {} + || true) 2>/dev/null |
		sed -nE 's/.*[[:space:]](\/[^ ]+) \(0x.*/\1/p' | sort -u | sed "\|^$d|d" | while read -r file; do
		mkdir -p "$d/root/$(dirname "$file")"
		cp -L "$file" "$d/root/$file"
	done
	tar -C "$d/root" --owner=0 --group=0 --mode=a+rX -cf "$d/layer.tar" .
	archive "$d" "$name" '"Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin"]' >"$d/image.tar"
	import "$d/image.tar"
	rm -rf "$d"
}

image() {
	local program d
	program=$(realpath "$1")
	alive || die "there is no cluster in $state"
	(cd "$here/../.." && go run ./release -image "$state/image.tar" -of "$program")
	import "$state/image.tar"
	rm "$state/image.tar"
}

import() {
	local d
	for d in "$state"/node*; do
		ctr -a "$d/cri.sock" -n k8s.io images import --base-name localhost/plimsoll "$1" >/dev/null &
	done
	wait
}

signal() { alive && nsenter -t "$(init)" --pid --mount -- kill -s "$2" "$(cat "$state/pid/$1")"; }
lose() { alive && nsenter -t "$(init)" --pid --mount -- "$here/cluster.sh" lost "$1"; }
# lost runs among the cluster's processes. Those in a node's network are its kubelet, its engine and the keepers of its
# containers; these have networks of their own, and are children of their keepers.
lost() {
	local p all=
	for p in $(ip netns pids "node$1"); do all="$all $p $(cat /proc/"$p"/task/*/children 2>/dev/null)"; done
	kill -9 $all 2>/dev/null || true
}

run() {
	alive || die "there is no cluster in $state"
	mkdir -p "$state/tmp"
	TMPDIR=$state/tmp nsenter -t "$(init)" --net -- "$@"
}

# members are the processes in the cluster's network that are not its own: tests, and what they have started.
members() { find /proc/[0-9]*/ns/net -maxdepth 0 -lname "$1" 2>/dev/null | cut -d/ -f3; }

down() {
	local c net
	if alive; then
		net=$(readlink "/proc/$(init)/ns/net")
		[ "$net" != "$(readlink /proc/self/ns/net)" ] || die "called in the cluster's network, which ends with it"
		net=${net//[\[\]]/?} # a pattern
		kill -9 "$(init)" # the kernel ends all that is in its PID namespace
		await "the end of the cluster" 30 eval "! [ -d /proc/$(init) ]"
		await "the end of what ran in its network" 30 eval "kill -9 \$(members '$net'); [ -z \"\$(members '$net')\" ]"
	fi
	for c in /sys/fs/cgroup/*/k8s.io /sys/fs/cgroup/k8s.io; do
		[ ! -d $c ] || find $c -depth -type d -exec rmdir {} \; 2>/dev/null || true
	done
	rm -rf "$state"
}

case ${1:-} in
build | possible | up | image | bundle | run | signal | lose | lost | down | inside) "$@" ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | head -n -1; exit 2 ;;
esac
