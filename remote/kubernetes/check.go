package kubernetes

import (
	"context"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Check implements remote.Place.
func (c *Cluster) Check(ctx context.Context, _ int) []testbed.Problem {
	path := coreAPI
	if c.given != "" {
		path = at(coreAPI, c.given, "pods") + "?limit=1"
	}
	if err := c.get(ctx, path, nil); err != nil {
		what := "the cluster at " + c.config.Host + " does not answer: " + err.Error()
		return []testbed.Problem{problem(testbed.Fatal, "kubernetes", what, "`kubectl get pods` must work first")}
	}
	return c.sweep(ctx)
}

func problem(s testbed.Severity, name, what, hint string) testbed.Problem {
	return testbed.Problem{Name: name, Severity: s, What: what, Hint: hint}
}

// unborn is how old a run without a living Job is when it is dead, and not just being made.
var unborn = 10 * time.Minute // less in a test

// sweep removes what is left of runs that have no living Job.
func (c *Cluster) sweep(ctx context.Context) (problems []testbed.Problem) {
	var runs meta.PartialObjectMetadataList
	path := at(coreAPI, "", "namespaces")
	if c.given != "" {
		path = at(batchAPI, c.given, "jobs")
	}
	if err := c.get(ctx, path+ofRuns(""), &runs); err != nil {
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
