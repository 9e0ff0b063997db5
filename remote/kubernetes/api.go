package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
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
)

// The API is spoken in JSON by paths: client-go's generated client would make this program a tenth larger.

// Groups of the API.
const (
	coreAPI          = "/api/v1"
	batchAPI         = "/apis/batch/v1"
	networkingAPI    = "/apis/networking.k8s.io/v1"
	authorizationAPI = "/apis/authorization.k8s.io/v1"
)

// at is the path of a resource in a namespace of the cluster; empty: in none.
func at(api, namespace string, parts ...string) string {
	if namespace != "" {
		api += "/namespaces/" + namespace
	}
	return api + "/" + strings.Join(parts, "/")
}

// ofRuns is the query for what belongs to a run; empty: to any.
func ofRuns(run string) string {
	if run == "" {
		return "?labelSelector=" + runLabel
	}
	return "?labelSelector=" + runLabel + "%3D" + run
}

// connect makes the client.
func (c *Cluster) connect() (err error) {
	known := runtime.NewScheme() // the server's reasons
	meta.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	config := rest.CopyConfig(c.config)
	config.QPS, config.NegotiatedSerializer = -1, serializer.NewCodecFactory(known).WithoutConversion()
	c.api, err = rest.UnversionedRESTClientFor(config)
	return err
}

// callTimeout is how long the API server may take to answer a question.
const callTimeout = 30 * time.Second

// get reads an object.
func (c *Cluster) get(ctx context.Context, path string, answer any) error {
	return c.call(ctx, http.MethodGet, path, nil, answer)
}

// create makes an object of a resource, and reads into made, unless nil, what it is now.
func (c *Cluster) create(ctx context.Context, path string, o, made any) error {
	if err := c.call(ctx, http.MethodPost, path, o, made); err != nil {
		return fmt.Errorf("kubernetes: make the run's %s: %w", path[strings.LastIndex(path, "/")+1:], err)
	}
	return nil
}

// call sends a request with a body, unless nil, and reads the answer, unless nil.
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

// ignoreMissing is for removals: a namespace that is being deleted already is a conflict.
func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// over says whether a job has ended, by whatever cause.
func over(j *batch.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batch.JobCondition) bool {
		return (c.Type == batch.JobComplete || c.Type == batch.JobFailed) && c.Status == core.ConditionTrue
	})
}
