package kubernetes

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/plimsoll-project/plimsoll/remote"
)

func TestWhere(t *testing.T) {
	known := &api.Config{CurrentContext: "a", Contexts: map[string]*api.Context{
		"a": {}, "arn:aws:eks:x:1:cluster/b": {},
	}}
	for where, want := range map[string]string{
		"": "a", "a": "a", "a/ns": "a/ns", "/ns": "a/ns",
		"arn:aws:eks:x:1:cluster/b":    "arn:aws:eks:x:1:cluster/b",
		"arn:aws:eks:x:1:cluster/b/ns": "arn:aws:eks:x:1:cluster/b/ns",
		"b":                            `no context "b"; it has: a, arn`,
		"b/ns":                         "no context",
	} {
		c := Cluster{}
		err := c.parse(known, where)
		got := c.String()
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%q: %s, want %s", where, got, want)
			continue
		}
		again := Cluster{}
		if err == nil && (again.parse(known, got) != nil || again.String() != got) {
			t.Errorf("%q: %s is read as %s", where, got, &again)
		}
	}
}

// Machines are in the order of their indices, whatever other pods exist; a permanent obstacle is
// not taken for a temporary one.
func TestAssemble(t *testing.T) {
	const yes, no = core.ConditionTrue, core.ConditionFalse
	made := func(index, ip string, ready core.ConditionStatus, change func(*core.Pod)) core.Pod {
		var p core.Pod
		p.Name = "pod-" + index
		p.Annotations = map[string]string{batch.JobCompletionIndexAnnotation: index}
		p.Spec.NodeName, p.Status.PodIP, p.Status.Phase = "node1", ip, core.PodRunning
		p.Status.Conditions = []core.PodCondition{{Type: core.PodReady, Status: ready}}
		if change != nil {
			change(&p)
		}
		return p
	}
	waiting := func(reason, message string) func(*core.Pod) {
		return func(p *core.Pod) {
			c := core.ContainerStatus{Image: "i:1"}
			c.State.Waiting = &core.ContainerStateWaiting{Reason: reason, Message: message}
			p.Status.ContainerStatuses = []core.ContainerStatus{c}
		}
	}
	first := made("0", "10.0.0.1", yes, nil)
	for _, c := range []struct {
		name  string
		pods  []core.Pod
		want  string
		final bool
	}{
		{"both, in order", []core.Pod{made("1", "10.0.0.2", yes, nil), first}, "", false},
		{"one is missing", []core.Pod{first}, "1 of 2 pods have been made", false},
		{"one has failed and is replaced", []core.Pod{
			first, made("1", "10.0.0.2", yes, func(p *core.Pod) { p.Status.Phase = "Failed" }),
		}, "2 of 2 pods have been made", false},
		{"no node", []core.Pod{first, made("1", "", no, func(p *core.Pod) {
			p.Status.Conditions = []core.PodCondition{{Type: core.PodScheduled, Status: no, Message: "0/3 nodes"}}
		})}, "no node for pod pod-1: 0/3 nodes", false},
		{"pulled for the first time", []core.Pod{made("1", "", no, waiting("ErrImagePull", "not found"))},
			"pod pod-1 on node1: ErrImagePull: not found; push", false},
		{"pulled again", []core.Pod{first, made("1", "", no, waiting("ImagePullBackOff", "not found"))},
			"ImagePullBackOff: not found", true},
		{"begins", []core.Pod{first, made("1", "", no, waiting("ContainerCreating", ""))}, "ContainerCreating", false},
		{"crashes", []core.Pod{made("1", "10.0.0.2", no, waiting("CrashLoopBackOff", "")), first},
			"CrashLoopBackOff", true},
	} {
		got, why := assemble(c.pods, 2, 2)
		if (got != nil) != (c.want == "") || !strings.Contains(why.what, c.want) || why.final != c.final {
			t.Errorf("%s: %d machines, %+v", c.name, len(got), why)
		}
		if first := c.pods[0].Name == "pod-0"; first {
			if got, _ := assemble(c.pods, 2, 1); got == nil || got[0].Name != "pod-0" {
				t.Errorf("%s: the first is ready, and not found", c.name)
			}
		}
		if got != nil && (got[0].Name != "pod-0" || got[1].Name != "pod-1") {
			t.Errorf("%s: %s, %s", c.name, got[0].Name, got[1].Name)
		}
	}
}

// Pods with IPv6 addresses are reached at them.
func TestMachinesWithIPv6(t *testing.T) {
	c := Cluster{given: "ns"}
	for ip, want := range map[string]string{"fd00:10:244::5": "[fd00:10:244::5]:7700", "10.244.0.5": "10.244.0.5:7700"} {
		var pod core.Pod
		pod.Labels, pod.Status.PodIP = map[string]string{core.LabelTopologyZone: "z"}, ip
		if got := c.machines(t.Context(), "rabcdefghij2", []*core.Pod{&pod})[0].Agent.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The objects are valid for the API, and in the order of creation.
func TestObjects(t *testing.T) {
	for _, pack := range []bool{false, true} {
		netem := pack
		c := Cluster{opt: Options{Image: `r.example:5000/a"b`, Pack: pack}}
		all, err := c.objects(remote.Spec{Run: "rabcdefghij2", Machines: 3, Emulate: netem, Netem: netem})
		must(t, err)
		kinds := ""
		for _, o := range all {
			kinds += o["kind"].(string) + " "
			if o["metadata"].(map[string]any)["name"] != "plimsoll-rabcdefghij2" {
				t.Errorf("%v", o["metadata"])
			}
		}
		if kinds != "Namespace Job ServiceAccount Secret NetworkPolicy " {
			t.Error(kinds)
		}
		b, err := json.Marshal(all[1])
		must(t, err)
		for want, there := range map[string]bool{
			`"completions":3`: true, `"defaultMode":288`: true, `"image":"r.example:5000/a\"b"`: true,
			`"cpu":"1"`: !pack, `"podAntiAffinity"`: !pack, `"topologySpreadConstraints"`: pack,
			`"privileged":true`: netem, `"--emulator","netem"`: netem, `"runAsNonRoot":true`: !netem,
			`"allowPrivilegeEscalation":false`: !netem,
		} {
			if strings.Contains(string(b), want) != there {
				t.Errorf("pack %t: %s in %s", pack, want, b)
			}
		}
	}
}

// server returns a cluster whose API server answers with a handler.
func server(t *testing.T, answer http.HandlerFunc) *Cluster {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	c := &Cluster{given: "ns", config: &rest.Config{Host: s.URL}}
	must(t, c.connect())
	return c
}

// A refusal to execute a program is reported in the words of the API server, or of a proxy before it.
func TestRefusedExec(t *testing.T) {
	for _, answer := range []string{
		"no such protocol",
		`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no such pod", "code": 404}`,
	} {
		c := server(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, answer, http.StatusNotFound) })
		err := c.Exec(t.Context(), remote.Machine{}, []string{"--version"}, nil, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "no such") {
			t.Error(err)
		}
	}
}

// Check reports before a run what it lacks: all missing rights, too few nodes, a namespace that
// does not admit emulated links, and an image that does not exist.
func TestCheck(t *testing.T) {
	const here, absent = "registry.example/plimsoll:1", "127.0.0.1:1/plimsoll:1"
	node := func(change func(*core.Node)) (n core.Node) {
		n.Status.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue}}
		n.Status.Images = []core.ContainerImage{{Names: []string{"docker.io/" + here}}}
		if change != nil {
			change(&n)
		}
		return n
	}
	tainted := func(e core.TaintEffect) core.Node {
		return node(func(n *core.Node) { n.Spec.Taints = []core.Taint{{Key: "k", Effect: e}} })
	}
	good := []core.Node{node(nil), tainted(core.TaintEffectPreferNoSchedule)}
	bad := []core.Node{
		node(nil), tainted(core.TaintEffectNoSchedule), node(func(n *core.Node) { n.Spec.Unschedulable = true }),
		node(func(n *core.Node) { n.Status.Conditions[0].Status = core.ConditionUnknown }),
	}
	for name, tt := range map[string]struct {
		denied  string // verbs and resources; "all"
		ns      string // empty: each run has its own
		level   string // enforced by the namespace
		nodes   []core.Node
		hidden  bool // the user may not read nodes
		pack    bool
		emulate bool
		netem   bool
		image   string
		want    string // problems' severities, names and parts of their texts and hints
	}{
		"all is there":         {nodes: good},
		"in a namespace":       {nodes: good, ns: "ns", level: "restricted"},
		"too few nodes":        {nodes: bad, want: "note nodes 2 machines 1 of the cluster's 4 nodes --pack"},
		"several on a node":    {nodes: bad, pack: true},
		"no node":              {nodes: bad[1:], pack: true, want: "note nodes 0 of the cluster's 3 nodes"},
		"nodes cannot be seen": {hidden: true, image: absent, want: "note nodes forbidden\nnote image " + absent},
		"no image":             {nodes: good, image: absent, want: "note image connection refused --image NAME"},
		"no level for links": {nodes: good, ns: "ns", level: "restricted", emulate: true,
			want: "fatal links namespace ns restricted"},
		"a level for links": {nodes: good, ns: "ns", level: "baseline", emulate: true},
		"no level for netem": {nodes: good, ns: "ns", level: "baseline", emulate: true, netem: true,
			want: "fatal links netem namespace ns baseline privileged link.emulator=user"},
		"netem":     {nodes: good, emulate: true, netem: true, want: "note links kernels netem VXLAN modprobe"},
		"one right": {denied: "create pods/exec", ns: "ns", want: "fatal rights in namespace ns: create pods/exec Role"},
		"no right": {denied: "all", want: "fatal rights create jobs.batch, get jobs.batch, patch jobs.batch, list pods " +
			"delete namespaces ClusterRole NAMESPACE"},
	} {
		t.Run(name, func(t *testing.T) {
			c := server(t, func(w http.ResponseWriter, r *http.Request) {
				var answer any
				switch r.URL.Path {
				case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
					var review authorization.SelfSubjectAccessReview
					if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
						t.Error(err)
						return
					}
					on := review.Spec.ResourceAttributes
					asked := on.Verb + " " + strings.TrimSuffix(on.Resource+"/"+on.Subresource, "/")
					review.Status.Allowed = tt.denied != "all" && tt.denied != asked
					if on.Namespace != tt.ns {
						t.Errorf("%s in namespace %q", asked, on.Namespace)
					}
					answer = review
				case "/api/v1/nodes":
					if tt.hidden {
						http.Error(w, `{"kind": "Status", "apiVersion": "v1", "message": "forbidden"}`, http.StatusForbidden)
						return
					}
					answer = core.NodeList{Items: tt.nodes}
				case "/api/v1/namespaces/ns":
					answer = core.Namespace{ObjectMeta: meta.ObjectMeta{Labels: map[string]string{enforceLabel: tt.level}}}
				case "/api/v1/namespaces", "/apis/batch/v1/namespaces/ns/jobs":
					answer = meta.PartialObjectMetadataList{}
				default:
					t.Errorf("asked for %s", r.URL)
				}
				_ = json.NewEncoder(w).Encode(answer)
			})
			c.given, c.opt.Pack, c.opt.Image = tt.ns, tt.pack, cmp.Or(tt.image, here)
			problems := c.Check(t.Context(), remote.Spec{Machines: 2, Emulate: tt.emulate, Netem: tt.netem})
			want := slices.DeleteFunc(strings.Split(tt.want, "\n"), func(s string) bool { return s == "" })
			if len(problems) != len(want) {
				t.Fatalf("%+v, want %q", problems, want)
			}
			for i, p := range problems {
				said := map[bool]string{true: "fatal", false: "note"}[p.Blocking] + " " + p.Name + ": " + p.What + "; " + p.Hint
				for _, word := range strings.Fields(want[i]) {
					if !strings.Contains(said, word) {
						t.Errorf("%s: no %q", said, word)
					}
				}
			}
		})
	}
}
