package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/plimsoll-project/plimsoll/remote"
)

// Requests are JSON to paths of the API: client-go's generated client would make this program a
// tenth larger.

// Groups of the API.
const (
	coreAPI          = "/api/v1"
	batchAPI         = "/apis/batch/v1"
	networkingAPI    = "/apis/networking.k8s.io/v1"
	authorizationAPI = "/apis/authorization.k8s.io/v1"
)

// at returns the path of a resource; namespace is empty for resources without one.
func at(api, namespace string, parts ...string) string {
	if namespace != "" {
		api += "/namespaces/" + namespace
	}
	return api + "/" + strings.Join(parts, "/")
}

// ofRuns returns the query that selects objects of a run, or of any run if run is empty.
func ofRuns(run string) string {
	if run == "" {
		return "?labelSelector=" + runLabel
	}
	return "?labelSelector=" + runLabel + "%3D" + run
}

// connect creates the client.
func (c *Cluster) connect() (err error) {
	known := runtime.NewScheme() // to decode the server's error reasons
	meta.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	config := rest.CopyConfig(c.config)
	config.QPS, config.NegotiatedSerializer = -1, serializer.NewCodecFactory(known).WithoutConversion()
	c.api, err = rest.UnversionedRESTClientFor(config)
	return err
}

// callTimeout limits the time of a request to the API server.
const callTimeout = 30 * time.Second

// get reads an object.
func (c *Cluster) get(ctx context.Context, path string, answer any) error {
	return c.call(ctx, http.MethodGet, path, nil, answer)
}

// create creates an object of a resource, and decodes the result into made, unless nil.
func (c *Cluster) create(ctx context.Context, path string, o, made any) error {
	if err := c.call(ctx, http.MethodPost, path, o, made); err != nil {
		return fmt.Errorf("kubernetes: make the run's %s: %w", path[strings.LastIndex(path, "/")+1:], err)
	}
	return nil
}

// call sends a request with a body, unless nil, and decodes the answer, unless nil.
func (c *Cluster) call(ctx context.Context, method, path string, body, answer any) error {
	r := c.api.Verb(method).RequestURI(path).Timeout(callTimeout).SetHeader("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.SetHeader("Content-Type", "application/merge-patch+json")
	}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r.Body(b)
	}
	said := r.Do(ctx)
	if err := said.Error(); err != nil || answer == nil {
		return err
	}
	b, err := said.Raw()
	if err == nil {
		err = json.Unmarshal(b, answer)
	}
	return err
}

// ignoreMissing returns nil for the errors of removals that are not needed: a namespace that is
// already being deleted causes a conflict.
func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// over reports whether a job has ended, for any reason.
func over(j *batch.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batch.JobCondition) bool {
		return (c.Type == batch.JobComplete || c.Type == batch.JobFailed) && c.Status == core.ConditionTrue
	})
}

// Exec implements remote.Place.
func (c *Cluster) Exec(ctx context.Context, on remote.Machine, args []string, in io.Reader, out io.Writer) error {
	var said strings.Builder
	q := url.Values{
		"container": {containerName}, "command": append([]string{program}, args...),
		"stdin": {strconv.FormatBool(in != nil)}, "stdout": {"true"}, "stderr": {"true"},
	}
	server := c.api.Get().RequestURI(on.ID + "/exec?" + q.Encode()).URL()
	command, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, server.String())
	if err == nil {
		err = command.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: &said})
	}
	if err != nil && said.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	if err != nil {
		return fmt.Errorf("kubernetes: run %s on %s: %w", program, on.Name, err)
	}
	return nil
}
