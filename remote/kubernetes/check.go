package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authorization "k8s.io/api/authorization/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Check implements remote.Place.
func (c *Cluster) Check(ctx context.Context, machines int) []testbed.Problem {
	if c.given != "" {
		if err := do(ctx, c.core.Get().Namespace(c.given).Resource("pods").Param("limit", "1"), &core.PodList{}); err != nil {
			return []testbed.Problem{problem(testbed.Fatal, "kubernetes", err.Error(), "`kubectl --namespace "+c.given+
				" get pods` must work first")}
		}
	}
	problems, err := c.rights(ctx)
	if err != nil {
		return []testbed.Problem{problem(testbed.Fatal, "kubernetes", "the cluster at "+c.config.Host+" does not answer: "+
			err.Error(), "`kubectl get pods` must work first")}
	}
	if len(problems) > 0 {
		return problems
	}
	problems = c.sweep(ctx)
	var nodes core.NodeList
	if err := do(ctx, c.core.Get().Resource("nodes"), &nodes); err != nil {
		return append(problems, problem(testbed.Note, "nodes", "how many there are cannot be seen: "+err.Error(), ""))
	}
	return append(append(problems, c.room(nodes.Items, machines)...), c.image(ctx, nodes.Items)...)
}

func problem(s testbed.Severity, name, what, hint string) testbed.Problem {
	return testbed.Problem{Name: name, Severity: s, What: what, Hint: hint}
}

// rights says what the user may not do that a run needs.
func (c *Cluster) rights(ctx context.Context) ([]testbed.Problem, error) {
	needs := []string{
		"create jobs.batch", "get jobs.batch", "patch jobs.batch", "list pods", "create pods/exec",
		"create secrets", "create serviceaccounts", "create networkpolicies.networking.k8s.io",
	}
	if c.given == "" {
		needs = append(needs, "create namespaces", "get namespaces", "list namespaces", "delete namespaces")
	} else {
		needs = append(needs, "delete jobs.batch", "delete secrets", "delete serviceaccounts",
			"delete networkpolicies.networking.k8s.io")
	}
	var lacking []string
	for _, need := range needs {
		verb, of, _ := strings.Cut(need, " ")
		of, group, _ := strings.Cut(of, ".")
		resource, sub, _ := strings.Cut(of, "/")
		q := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorization.ResourceAttributes{
				Namespace: c.given, Verb: verb, Group: group, Resource: resource, Subresource: sub,
			},
		}}
		if err := do(ctx, c.authorization.Post().Resource("selfsubjectaccessreviews").Body(q), q); err != nil {
			return nil, err
		}
		if !q.Status.Allowed {
			lacking = append(lacking, need)
		}
	}
	if len(lacking) == 0 {
		return nil, nil
	}
	where, hint := "in any namespace", "name a namespace in which you may: --on kubernetes:CONTEXT/NAMESPACE"
	if c.given != "" {
		where, hint = "in namespace "+c.given, "who administers the cluster can give you a role with these verbs"
	}
	return []testbed.Problem{problem(testbed.Fatal, "rights", "you may not do "+where+": "+strings.Join(lacking, ", "), hint)}, nil
}

// room says whether so many machines find nodes.
func (c *Cluster) room(nodes []core.Node, machines int) []testbed.Problem {
	usable := 0
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c core.NodeCondition) bool {
			return c.Type == core.NodeReady && c.Status == core.ConditionTrue
		})
		closed := slices.ContainsFunc(n.Spec.Taints, func(t core.Taint) bool { return t.Effect != core.TaintEffectPreferNoSchedule })
		if ready && !n.Spec.Unschedulable && !closed {
			usable++
		}
	}
	if usable >= machines || usable > 0 && c.pack {
		return nil
	}
	return []testbed.Problem{problem(testbed.Warning, "nodes",
		fmt.Sprintf("the run needs %d machines, each on a node of its own, and %d of the cluster's %d nodes take pods", machines,
			usable, len(nodes)), "--pack puts several on a node, which then share its CPU and link; a cluster that adds nodes by itself may do so")}
}

// image says whether the image of the agents can be had: nodes list some of those that they have.
func (c *Cluster) image(ctx context.Context, nodes []core.Node) []testbed.Problem {
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
		return []testbed.Problem{problem(testbed.Warning, "image", "no node has it yet, and it is not found from here: "+err.Error(),
			"push plimsoll_VERSION_image.tar of a release to a registry of yours (skopeo copy oci-archive:FILE docker://NAME), "+
				"and give its name by --image")}
	}
	return nil
}

// unborn is how old a run without a living Job is when it is dead, and not just being made.
var unborn = 10 * time.Minute // less in a test

// sweep removes what is left of runs that have no living Job.
func (c *Cluster) sweep(ctx context.Context) (problems []testbed.Problem) {
	var jobs batch.JobList
	r := c.batch.Get().Resource("jobs").Param("labelSelector", runLabel)
	if c.given != "" {
		r = r.Namespace(c.given)
	}
	if err := do(ctx, r, &jobs); err != nil {
		return []testbed.Problem{problem(testbed.Note, "left over", "what dead runs left cannot be looked for: "+err.Error(), "")}
	}
	living, candidates := map[string]bool{}, map[string]meta.Time{}
	for _, j := range jobs.Items {
		run := j.Labels[runLabel]
		living[run] = living[run] || !over(&j) && (j.Spec.Suspend == nil || !*j.Spec.Suspend)
		candidates[run] = j.CreationTimestamp
	}
	if c.given == "" {
		candidates = map[string]meta.Time{}
		var all core.NamespaceList
		if err := do(ctx, c.core.Get().Resource("namespaces").Param("labelSelector", runLabel), &all); err != nil {
			return []testbed.Problem{problem(testbed.Note, "left over", "what dead runs left cannot be looked for: "+err.Error(), "")}
		}
		for _, ns := range all.Items {
			if ns.Name == nameOf(ns.Labels[runLabel]) {
				candidates[ns.Labels[runLabel]] = ns.CreationTimestamp
			}
		}
	}
	for run, made := range candidates {
		if living[run] || time.Since(made.Time) < unborn {
			continue
		}
		what := "removed what run " + run + " left in namespace " + c.namespace(run)
		if err := c.Delete(ctx, run); err != nil {
			what = "run " + run + " has left something: " + err.Error()
		}
		problems = append(problems, problem(testbed.Note, "left over", what, ""))
	}
	return problems
}
