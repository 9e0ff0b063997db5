// Package kubernetes is machines that are pods of a Kubernetes cluster: for each run one Indexed
// Job of agents, in a namespace of its own or in one that the user names. Pods run at Pod
// Security level restricted, or baseline where they emulate links (privileged by netem), and have no
// access to the cluster's API.
package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/plimsoll-project/plimsoll/remote"
)

// Image is the name of the container images of releases.
const Image = "plimsoll-project/plimsoll"

// Options are what a launcher says of a cluster beside where it is.
type Options struct {
	Version string       // of this program, which the image must have
	Image   string       // of the agents; empty: that of the version
	Pack    bool         // a node may have several machines
	Note    func(string) // called with what is waited for; may be nil
}

// Cluster is a place for runs.
type Cluster struct {
	opt    Options
	name   string // of the context
	given  string // namespace of all runs; empty: each has its own
	config *rest.Config
	api    *rest.RESTClient
}

var _ remote.Place = (*Cluster)(nil)

// Open uses the user's kubeconfig (KUBECONFIG, ~/.kube/config). Where is CONTEXT[/NAMESPACE]; each may be
// left out: the current context, and a namespace of each run's own.
func Open(where string, opt Options) (*Cluster, error) {
	klog.SetLogger(logr.Discard()) // client-go logs what it also returns
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	known, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubernetes: read the kubeconfig: %w", err)
	}
	opt.Image = cmp.Or(opt.Image, Image+":"+opt.Version)
	c := &Cluster{opt: opt}
	if err := c.parse(known, where); err != nil {
		return nil, err
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.name}
	c.config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubernetes: no access to a cluster: %w; `kubectl get pods` must work first", err)
	}
	if err := c.connect(); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return c, nil
}

// parse reads CONTEXT[/NAMESPACE]: the names of contexts may have slashes, too.
func (c *Cluster) parse(known *api.Config, where string) error {
	c.name = where
	if at := strings.LastIndex(where, "/"); at >= 0 && known.Contexts[where] == nil {
		c.name, c.given = where[:at], where[at+1:]
	}
	c.name = cmp.Or(c.name, known.CurrentContext)
	if c.name != "" && known.Contexts[c.name] == nil {
		return fmt.Errorf("kubernetes: the kubeconfig has no context %q; it has: %s", c.name,
			strings.Join(slices.Sorted(maps.Keys(known.Contexts)), ", "))
	}
	return nil
}

// String is what [Open] takes for the same cluster, whatever context is the current one then.
func (c *Cluster) String() string {
	if c.given != "" {
		return c.name + "/" + c.given
	}
	return c.name
}

// namespace is where all of a run is.
func (c *Cluster) namespace(run string) string {
	if c.given != "" {
		return c.given
	}
	return nameOf(run)
}

// nameOf is the name of every object of a run.
func nameOf(run string) string { return "plimsoll-" + run }

// owner is what all else of a run goes with: its namespace, or its job.
func (c *Cluster) owner(run string) string {
	if c.given == "" {
		return at(coreAPI, "", "namespaces", nameOf(run))
	}
	return at(batchAPI, c.given, "jobs", nameOf(run))
}

func (c *Cluster) job(ctx context.Context, run string) (*batch.Job, error) {
	var j batch.Job
	err := c.get(ctx, at(batchAPI, c.namespace(run), "jobs", nameOf(run)), &j)
	return &j, err
}

// living are the pods of a run that are not about to go.
func (c *Cluster) living(ctx context.Context, run string) ([]core.Pod, error) {
	var all core.PodList
	err := c.get(ctx, at(coreAPI, c.namespace(run), "pods")+ofRuns(run), &all)
	return slices.DeleteFunc(all.Items, func(p core.Pod) bool { return p.DeletionTimestamp != nil }), err
}

// Create implements remote.Place.
func (c *Cluster) Create(ctx context.Context, spec remote.Spec) ([]remote.Machine, error) {
	all, err := c.objects(spec)
	if err != nil {
		return nil, err
	}
	ns := c.namespace(spec.Run)
	if c.given == "" {
		if err := c.create(ctx, at(coreAPI, "", "namespaces"), all[0], nil); err != nil {
			return nil, err
		}
	}
	// The job is suspended until there is all that its pods need, which it owns.
	var j batch.Job
	if err := c.create(ctx, at(batchAPI, ns, "jobs"), all[1], &j); err != nil {
		return nil, err
	}
	owner := map[string]string{
		"apiVersion": "batch/v1", "kind": "Job", "name": nameOf(spec.Run), "uid": string(j.UID),
	}
	for i, path := range []string{
		at(coreAPI, ns, "serviceaccounts"), at(coreAPI, ns, "secrets"), at(networkingAPI, ns, "networkpolicies"),
	} {
		o := all[2+i]
		o["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
		if err := c.create(ctx, path, o, nil); err != nil {
			return nil, err
		}
	}
	begin := map[string]any{"spec": map[string]bool{"suspend": false}}
	if err := c.call(ctx, http.MethodPatch, at(batchAPI, ns, "jobs", nameOf(spec.Run)), begin, nil); err != nil {
		return nil, fmt.Errorf("kubernetes: begin the run's job: %w", err)
	}
	machines, err := c.await(ctx, spec.Run, spec.Machines, spec.Machines)
	if err != nil {
		return nil, err
	}
	return machines, c.sameVersion(ctx, machines[0])
}

// sameVersion refuses an image of another plimsoll, which may not understand this one.
func (c *Cluster) sameVersion(ctx context.Context, m remote.Machine) error {
	var version strings.Builder
	if err := c.Exec(ctx, m, []string{"--version"}, nil, &version); err != nil {
		return err
	}
	if said := strings.TrimSpace(version.String()); !strings.HasSuffix(said, c.opt.Version) {
		return fmt.Errorf("kubernetes: image %s has %q, and this is plimsoll %s: both must be of one version",
			c.opt.Image, said, c.opt.Version)
	}
	return nil
}

// Find implements remote.Place. A run whose first machine is gone is, for what it recorded is gone
// with it; of others that are gone there is no more than the name.
func (c *Cluster) Find(ctx context.Context, run string, _ remote.Machine) ([]remote.Machine, error) {
	j, err := c.job(ctx, run)
	if err == nil && !over(j) && j.DeletionTimestamp == nil && !strings.HasPrefix(j.Status.CompletedIndexes, "0") {
		ctx, cancel := context.WithTimeout(ctx, findTimeout)
		defer cancel()
		machines, err := c.await(ctx, run, int(*j.Spec.Completions), 1)
		if !errors.Is(err, remote.ErrGone) {
			return machines, err
		}
	} else if ignoreMissing(err) != nil {
		return nil, fmt.Errorf("kubernetes: find run %s: %w", run, err)
	}
	if err := c.Delete(ctx, run); err != nil {
		return nil, err
	}
	return nil, remote.ErrGone
}

// patience is how long pods may take to go before they are removed by force, which is for those
// of a node that is lost: it does not say that they have ended.
const patience = 30 * time.Second

// Delete implements remote.Place.
func (c *Cluster) Delete(ctx context.Context, run string) error {
	how := map[string]string{}
	if c.given != "" { // with a namespace goes all that is in it
		how["propagationPolicy"] = "Foreground"
	}
	err := ignoreMissing(c.call(ctx, http.MethodDelete, c.owner(run), how, nil))
	forced := false
	for begun := time.Now(); err == nil && c.left(ctx, run); remote.Pause(ctx, 200*time.Millisecond) {
		switch {
		case ctx.Err() != nil:
			err = errors.New("what it had does not go away")
		case !forced && time.Since(begun) > patience:
			forced = true
			now := map[string]int{"gracePeriodSeconds": 0}
			err = c.call(ctx, http.MethodDelete, at(coreAPI, c.namespace(run), "pods")+ofRuns(run), now, nil)
		}
	}
	if err != nil {
		return fmt.Errorf("kubernetes: remove run %s from namespace %s: %w", run, c.namespace(run), err)
	}
	return nil
}

// left says whether something of a run is there, or cannot be seen.
func (c *Cluster) left(ctx context.Context, run string) bool {
	return !apierrors.IsNotFound(c.get(ctx, c.owner(run), nil))
}
