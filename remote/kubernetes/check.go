package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Check implements remote.Place.
func (c *Cluster) Check(ctx context.Context, machines int) []testbed.Problem {
	if c.given != "" {
		if err := c.get(ctx, at(coreAPI, c.given, "pods")+"?limit=1", nil); err != nil {
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
	var nodes list[node]
	if err := c.get(ctx, at(coreAPI, "", "nodes"), &nodes); err != nil {
		return append(problems, problem(testbed.Note, "nodes", "how many there are cannot be seen: "+err.Error(), ""))
	}
	return append(append(problems, c.room(nodes.Items, machines)...), c.findImage(ctx, nodes.Items)...)
}

func problem(s testbed.Severity, name, what, hint string) testbed.Problem {
	return testbed.Problem{Name: name, Severity: s, What: what, Hint: hint}
}

// rights says what the user may not do that a run needs.
func (c *Cluster) rights(ctx context.Context) ([]testbed.Problem, error) {
	needs := []string{ // exec by WebSocket is a GET, which newer clusters allow only with create
		"create jobs.batch", "get jobs.batch", "patch jobs.batch", "list pods", "get pods/exec", "create pods/exec",
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
		review := map[string]any{
			"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
			"spec": map[string]any{"resourceAttributes": map[string]string{
				"namespace": c.given, "verb": verb, "group": group, "resource": resource, "subresource": sub,
			}},
		}
		var answer struct{ Status struct{ Allowed bool } }
		err := c.call(ctx, http.MethodPost, at(authorizationAPI, "", "selfsubjectaccessreviews"), review, &answer)
		if err != nil {
			return nil, err
		}
		if !answer.Status.Allowed {
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
func (c *Cluster) room(nodes []node, machines int) []testbed.Problem {
	usable := 0
	for _, n := range nodes {
		if n.usable() {
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
func (c *Cluster) findImage(ctx context.Context, nodes []node) []testbed.Problem {
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
	var runs list[object]
	path := at(coreAPI, "", "namespaces")
	if c.given != "" {
		path = at(batchAPI, c.given, "jobs")
	}
	if err := c.get(ctx, path+ofRuns(""), &runs); err != nil {
		what := "what dead runs left cannot be seen: " + err.Error()
		return []testbed.Problem{problem(testbed.Note, "left over", what, "")}
	}
	for _, o := range runs.Items {
		run := o.Metadata.Labels[runLabel]
		if o.Metadata.Name != nameOf(run) || time.Since(o.Metadata.Made) < unborn {
			continue
		}
		j, err := c.job(ctx, run)
		if ignoreMissing(err) != nil || err == nil && !j.over() && !j.Spec.Suspend {
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
