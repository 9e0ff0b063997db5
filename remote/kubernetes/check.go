package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Check implements remote.Place.
func (c *Cluster) Check(ctx context.Context, machines int) []testbed.Problem {
	if c.given != "" {
		r := c.core.Get().Namespace(c.given).Resource("pods").Param("limit", "1")
		if err := do(ctx, r, &core.PodList{}); err != nil {
			return []testbed.Problem{problem(testbed.Fatal, "kubernetes", err.Error(), "`kubectl --namespace "+c.given+
				" get pods` must work first")}
		}
	}
	problems, err := c.rights(ctx)
	if err != nil {
		what := "the cluster at " + c.config.Host + " does not answer: " + err.Error()
		return []testbed.Problem{problem(testbed.Fatal, "kubernetes", what, "`kubectl get pods` must work first")}
	}
	if len(problems) > 0 {
		return problems
	}
	problems = c.sweep(ctx)
	var nodes core.NodeList
	if err := do(ctx, c.core.Get().Resource("nodes"), &nodes); err != nil {
		return append(problems, problem(testbed.Note, "nodes", "how many there are cannot be seen: "+err.Error(), ""))
	}
	return append(append(problems, c.room(nodes.Items, machines)...), c.findImage(ctx, nodes.Items)...)
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
		needs = append(needs, "list jobs.batch", "delete jobs.batch")
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
	what := "you may not do " + where + ": " + strings.Join(lacking, ", ")
	return []testbed.Problem{problem(testbed.Fatal, "rights", what, hint)}, nil
}

// room says whether so many machines find nodes.
func (c *Cluster) room(nodes []core.Node, machines int) []testbed.Problem {
	usable := 0
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c core.NodeCondition) bool {
			return c.Type == core.NodeReady && c.Status == core.ConditionTrue
		})
		closed := slices.ContainsFunc(n.Spec.Taints, func(t core.Taint) bool {
			return t.Effect != core.TaintEffectPreferNoSchedule
		})
		if ready && !n.Spec.Unschedulable && !closed {
			usable++
		}
	}
	if usable >= machines || usable > 0 && c.pack {
		return nil
	}
	what := fmt.Sprintf("the run needs %d machines, each on a node of its own, and %d of the cluster's %d nodes "+
		"take pods", machines, usable, len(nodes))
	return []testbed.Problem{problem(testbed.Warning, "nodes", what,
		"--pack puts several on a node, which then share its CPU and link; or let the cluster add nodes")}
}

// findImage says whether the image of the agents can be had: nodes list some of those that they have.
func (c *Cluster) findImage(ctx context.Context, nodes []core.Node) []testbed.Problem {
	for _, n := range nodes {
		for _, i := range n.Status.Images {
			if slices.ContainsFunc(i.Names, func(name string) bool {
				return name == c.image || strings.HasSuffix(name, "/"+c.image)
			}) {
				return nil
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := (image.Store{Stall: callTimeout}).Size(ctx, c.image); err != nil {
		return []testbed.Problem{problem(testbed.Warning, "image",
			"no node has image "+c.image+" yet, and it is not found from here: "+err.Error(),
			"push plimsoll_VERSION_image.tar of a release to a registry of yours (skopeo copy --all oci-archive:FILE "+
				"docker://NAME), and say --image NAME")}
	}
	return nil
}

// unborn is how old a run without a living Job is when it is dead, and not just being made.
var unborn = 10 * time.Minute // less in a test

// sweep removes what is left of runs that have no living Job.
func (c *Cluster) sweep(ctx context.Context) (problems []testbed.Problem) {
	var runs meta.PartialObjectMetadataList // namespaces, or Jobs in the one that was given
	r := c.core.Get().Resource("namespaces")
	if c.given != "" {
		r = c.batch.Get().Namespace(c.given).Resource("jobs")
	}
	b, err := r.Param("labelSelector", runLabel).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(b, &runs)
	}
	if err != nil {
		what := "what dead runs left cannot be seen: " + err.Error()
		return []testbed.Problem{problem(testbed.Note, "left over", what, "")}
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
			what = "a dead run has left something: " + err.Error()
		}
		problems = append(problems, problem(testbed.Note, "left over", what, ""))
	}
	return problems
}
