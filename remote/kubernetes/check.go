package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Check implements remote.Place.
func (c *Cluster) Check(ctx context.Context, want remote.Spec) []engine.Problem {
	problems, err := c.rights(ctx)
	if err != nil {
		what := "the cluster at " + c.config.Host + " does not answer: " + err.Error()
		return []engine.Problem{refuse("kubernetes", what, "`kubectl get pods` must work first")}
	}
	if want.Emulate {
		problems = append(problems, c.podSecurity(ctx, want.Netem)...)
	}
	if len(problems) > 0 {
		return problems
	}
	problems = c.sweep(ctx)
	if want.Netem {
		problems = append(problems, note("links", "whether the kernels of nodes have netem, tbf and VXLAN is seen only by "+
			"the agents, which end a run and say so where one has not", "on each node: modprobe sch_netem sch_tbf vxlan"))
	}
	var nodes core.NodeList
	if err := c.get(ctx, at(coreAPI, "", "nodes"), &nodes); err != nil {
		problems = append(problems, note("nodes", "how many there are cannot be seen: "+err.Error(), ""))
	} else {
		problems = append(problems, c.room(nodes.Items, want.Machines)...)
	}
	return append(problems, c.findImage(ctx, nodes.Items)...)
}

func refuse(name, what, hint string) engine.Problem {
	return engine.Problem{Name: name, What: what, Hint: hint, Blocking: true}
}

func note(name, what, hint string) engine.Problem {
	return engine.Problem{Name: name, What: what, Hint: hint}
}

// right is the permission for verbs on a kind of object.
type right struct{ group, resource, verbs string }

// rights returns a problem with the permissions that a run needs and the user lacks.
func (c *Cluster) rights(ctx context.Context) ([]engine.Problem, error) {
	needs := []right{
		{"batch", "jobs", "create get patch"},
		{"", "pods", "list"},
		{"", "pods/exec", "get create"}, // over WebSocket it is a GET, which newer clusters allow only with create
		{"", "secrets", "create"},
		{"", "serviceaccounts", "create"},
		{"networking.k8s.io", "networkpolicies", "create"},
	}
	if c.given == "" {
		needs = append(needs, right{"", "namespaces", "create get list delete"})
	} else {
		needs = append(needs, right{"batch", "jobs", "list delete"})
	}
	var lacking []string
	for _, need := range needs {
		for verb := range strings.FieldsSeq(need.verbs) {
			allowed, err := c.may(ctx, verb, need)
			if err != nil {
				return nil, err
			}
			if !allowed {
				lacking = append(lacking, verb+" "+strings.TrimSuffix(need.resource+"."+need.group, "."))
			}
		}
	}
	if len(lacking) == 0 {
		return nil, nil
	}
	where, role := "in namespace "+c.given, "Role there"
	if c.given == "" {
		where, role = "in the cluster", "ClusterRole, or name a namespace in which you may more: --on kubernetes:"+
			c.name+"/NAMESPACE"
	}
	return []engine.Problem{refuse("rights", "you may not, "+where+": "+strings.Join(lacking, ", "),
		"who administers the cluster can bind you to a "+role)}, nil
}

// may asks the cluster whether the user has a permission in the namespace of runs.
func (c *Cluster) may(ctx context.Context, verb string, on right) (bool, error) {
	resource, sub, _ := strings.Cut(on.resource, "/")
	var review authorization.SelfSubjectAccessReview
	review.Kind, review.APIVersion = "SelfSubjectAccessReview", "authorization.k8s.io/v1"
	review.Spec.ResourceAttributes = &authorization.ResourceAttributes{
		Namespace: c.given, Verb: verb, Group: on.group, Resource: resource, Subresource: sub,
	}
	err := c.call(ctx, http.MethodPost, at(authorizationAPI, "", "selfsubjectaccessreviews"), review, &review)
	return review.Status.Allowed, err
}

// podSecurity returns a problem if the user's namespace does not admit pods with user namespaces,
// in which links are emulated, or with the rights that netem needs. If the user may not read the
// namespace, the cluster refuses the pods later.
func (c *Cluster) podSecurity(ctx context.Context, netem bool) []engine.Problem {
	var ns meta.PartialObjectMetadata
	if c.given == "" || c.get(ctx, at(coreAPI, "", "namespaces", c.given), &ns) != nil {
		return nil
	}
	level, emulator, needed, instead := ns.Labels[enforceLabel], "user", "baseline", "use the links that are there: "+
		"--set link="
	if netem {
		emulator, needed, instead = "netem", "privileged", "say --set link.emulator=user"
	}
	if level == "" || level == "privileged" || level == needed {
		return nil
	}
	return []engine.Problem{refuse("links", fmt.Sprintf("link.emulator: %s needs pods at Pod Security level %s, and "+
		"namespace %s enforces %s", emulator, needed, c.given, level),
		"label it "+enforceLabel+"="+needed+", name another, or "+instead)}
}

// room returns a problem if there are not enough nodes for the machines.
func (c *Cluster) room(nodes []core.Node, machines int) []engine.Problem {
	usable := 0
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c core.NodeCondition) bool {
			return c.Type == core.NodeReady && c.Status == core.ConditionTrue
		})
		tainted := slices.ContainsFunc(n.Spec.Taints, func(t core.Taint) bool {
			return t.Effect != core.TaintEffectPreferNoSchedule // agents tolerate no taints
		})
		if ready && !tainted && !n.Spec.Unschedulable {
			usable++
		}
	}
	if usable >= machines || usable > 0 && c.opt.Pack {
		return nil
	}
	what := fmt.Sprintf("the run needs %d machines, each on a node of its own, and %d of the cluster's %d nodes take pods",
		machines, usable, len(nodes))
	return []engine.Problem{note("nodes", what,
		"--pack puts several on a node, which then share its CPU and link; or let the cluster add nodes")}
}

// findImage returns a problem if the agents' image is neither on a node, according to its
// incomplete list of images, nor in a registry.
func (c *Cluster) findImage(ctx context.Context, nodes []core.Node) []engine.Problem {
	for _, n := range nodes {
		for _, i := range n.Status.Images {
			if slices.ContainsFunc(i.Names, func(name string) bool {
				return name == c.opt.Image || strings.HasSuffix(name, "/"+c.opt.Image)
			}) {
				return nil
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := (image.Store{Stall: callTimeout}).Size(ctx, c.opt.Image); err != nil {
		return []engine.Problem{note("image",
			"no node is seen to have image "+c.opt.Image+", and it is not found from here: "+err.Error(), pushImage)}
	}
	return nil
}

// unborn is the age from which a run without a living Job is dead, and not just being created.
var unborn = 10 * time.Minute // shorter in a test

// sweep removes the remains of runs that have no living Job.
func (c *Cluster) sweep(ctx context.Context) (problems []engine.Problem) {
	var runs meta.PartialObjectMetadataList
	path := at(coreAPI, "", "namespaces")
	if c.given != "" {
		path = at(batchAPI, c.given, "jobs")
	}
	if err := c.get(ctx, path+ofRuns(""), &runs); err != nil {
		what := "cannot check for remains of crashed runs: " + err.Error()
		return []engine.Problem{note("left over", what, "")}
	}
	for _, o := range runs.Items {
		run := o.Labels[runLabel]
		if o.Name != nameOf(run) || time.Since(o.CreationTimestamp.Time) < unborn {
			continue
		}
		j, err := c.job(ctx, run)
		if ignoreMissing(err) != nil || err == nil && !over(j) && !*j.Spec.Suspend {
			continue
		}
		what := "removed what run " + run + " left in namespace " + c.namespace(run)
		if err := c.Delete(ctx, run); err != nil {
			what = "cannot remove what a crashed run left: " + err.Error()
		}
		problems = append(problems, note("left over", what, ""))
	}
	return problems
}
