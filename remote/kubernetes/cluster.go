// Package kubernetes provides machines that are pods of a Kubernetes cluster: one Indexed Job of
// agents for each run, in its own namespace or in one that the user names. Pods run at Pod Security
// level restricted, or baseline if they emulate links (privileged for netem), and have no access to
// the cluster's API.
package kubernetes

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/go-logr/logr"
	"github.com/goccy/go-yaml"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/remote"
)

// Image is the name of the container images of releases.
const Image = "plimsoll-project/plimsoll"

// Options are the settings of a launcher for a cluster.
type Options struct {
	Version string       // of this program, which the image must match
	Image   string       // of the agents; empty: the image of Version
	Pack    bool         // a node may have several machines
	Note    func(string) // called with the reason for waiting; may be nil
}

// Cluster is a Kubernetes cluster as a place for runs.
type Cluster struct {
	opt    Options
	name   string // of the context
	given  string // namespace of all runs; empty: one for each run
	config *rest.Config
	api    *rest.RESTClient
}

// Open uses the user's kubeconfig (KUBECONFIG, ~/.kube/config). where is CONTEXT[/NAMESPACE]; the
// defaults are the current context and a new namespace for each run.
func Open(where string, opt Options) (*Cluster, error) {
	klog.SetLogger(logr.Discard()) // client-go logs errors that it also returns
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

// parse parses CONTEXT[/NAMESPACE]; names of contexts may contain slashes.
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

// String returns the argument of [Open] for this cluster, independent of the current context.
func (c *Cluster) String() string {
	if c.given != "" {
		return c.name + "/" + c.given
	}
	return c.name
}

// namespace returns the namespace of a run.
func (c *Cluster) namespace(run string) string {
	if c.given != "" {
		return c.given
	}
	return nameOf(run)
}

// nameOf returns the name of every object of a run.
func nameOf(run string) string { return "plimsoll-" + run }

// owner returns the path of the object with which everything else of a run is deleted: its
// namespace or its job.
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

// living returns the pods of a run that are not being deleted.
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
	// The job owns all that its pods need, and is suspended until that exists.
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

// sameVersion returns an error if the image has another version of plimsoll, which may be
// incompatible.
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

// Find implements remote.Place. A run without its first machine is gone, because its record was
// there; for other missing machines, Find returns only the name.
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

// patience is how long pods may take to end before they are removed by force. Force is for pods on
// a lost node, which does not report their end.
const patience = 30 * time.Second

// Delete implements remote.Place.
func (c *Cluster) Delete(ctx context.Context, run string) error {
	how := map[string]string{}
	if c.given != "" { // deleting a namespace deletes everything in it
		how["propagationPolicy"] = "Foreground"
	}
	err := ignoreMissing(c.call(ctx, http.MethodDelete, c.owner(run), how, nil))
	forced := false
	for begun := time.Now(); err == nil && c.left(ctx, run); timing.Pause(ctx, 200*time.Millisecond) {
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

// left reports whether something of a run exists or its absence cannot be confirmed.
func (c *Cluster) left(ctx context.Context, run string) bool {
	return !apierrors.IsNotFound(c.get(ctx, c.owner(run), nil))
}

// Names that objects.yaml contains, too.
const (
	runLabel      = "plimsoll.run"   // on every object and pod, with the run's ID
	linksLabel    = "plimsoll.links" // on pods with emulated links between them
	enforceLabel  = "pod-security.kubernetes.io/enforce"
	containerName = "agent"
	program       = "plimsoll" // in the PATH of the image
	agentPort     = 7700
	workDir       = "/plimsoll"
)

//go:embed objects.yaml
var objectsYAML string

var objectsTemplate = template.Must(template.New("objects.yaml").Parse(objectsYAML))

// objects returns all objects of a run except its pods: its namespace, its job, and the objects
// that the job owns.
func (c *Cluster) objects(spec remote.Spec) (all []map[string]any, err error) {
	var text strings.Builder
	name := nameOf(spec.Run)
	about := fmt.Sprintf("{name: %s, labels: {%s: %s, app.kubernetes.io/name: plimsoll}}", name, runLabel, spec.Run)
	err = objectsTemplate.Execute(&text, struct {
		remote.Spec
		Options
		Name, About, Keep, Credentials string
	}{spec, c.opt, name, about, remote.RunDir, base64.StdEncoding.EncodeToString(spec.Credentials.Encoded())})
	if err != nil {
		return nil, err
	}
	for one := range strings.SplitSeq(text.String(), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(one), &o); err != nil {
			return nil, fmt.Errorf("kubernetes: objects.yaml: %w", err)
		}
		all = append(all, o)
	}
	return all, nil
}
