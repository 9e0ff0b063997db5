package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The API is spoken in JSON, of which these are the parts that matter here: the generated types of its
// groups would make this program a tenth larger.

type metadata struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Made        time.Time         `json:"creationTimestamp"`
	Deleted     *time.Time        `json:"deletionTimestamp"`
}

// object is what all kinds have, and enough for some.
type object struct {
	Metadata metadata `json:"metadata"`
}

type list[T any] struct {
	Items []T `json:"items"`
}

type conditions []struct{ Type, Status, Message string }

// are says whether a condition is met.
func (all conditions) are(what string) bool {
	for _, c := range all {
		if c.Type == what && c.Status == "True" {
			return true
		}
	}
	return false
}

type pod struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase      string      `json:"phase"`
		IP         string      `json:"podIP"`
		Conditions conditions  `json:"conditions"`
		Containers []container `json:"containerStatuses"`
	} `json:"status"`
}

type container struct {
	Image string `json:"image"`
	State struct {
		Waiting *struct{ Reason, Message string } `json:"waiting"`
	} `json:"state"`
}

type job struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Completions int  `json:"completions"`
		Suspend     bool `json:"suspend"`
	} `json:"spec"`
	Status struct {
		Conditions conditions `json:"conditions"`
		Completed  string     `json:"completedIndexes"`
	} `json:"status"`
}

// over says whether a job has ended, by whatever cause.
func (j *job) over() bool {
	return j.Status.Conditions.are("Complete") || j.Status.Conditions.are("Failed")
}

type node struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Unschedulable bool    `json:"unschedulable"`
		Taints        []taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions conditions                 `json:"conditions"`
		Images     []struct{ Names []string } `json:"images"`
	} `json:"status"`
}

type taint struct{ Effect string }

// usable says whether pods are put on a node.
func (n *node) usable() bool {
	return n.Status.Conditions.are("Ready") && !n.Spec.Unschedulable &&
		!slices.ContainsFunc(n.Spec.Taints, func(t taint) bool { return t.Effect != "PreferNoSchedule" })
}

// status is the API server's answer when it is not what was asked for, and how a command ended.
type status struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Code    int    `json:"code"`
	Details struct {
		Causes []struct{ Reason, Message string } `json:"causes"`
	} `json:"details"`
}

func (s *status) Error() string { return s.Message }

// missing says whether an error is that something is not there.
func missing(err error) bool {
	var s *status
	return errors.As(err, &s) && s.Code == http.StatusNotFound
}

// ignoreMissing is for removals: a namespace that is being deleted already is a conflict.
func ignoreMissing(err error) error {
	var s *status
	if errors.As(err, &s) && (s.Code == http.StatusNotFound || s.Code == http.StatusConflict) {
		return nil
	}
	return err
}

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

// callTimeout is how long the API server may take to answer a question.
const callTimeout = 30 * time.Second

// get reads an object, or into a *string what is no object.
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
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	for {
		r, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(content))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
		w, err := c.client.Do(r)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(w.Body)
		w.Body.Close()
		switch {
		case err != nil:
			return err
		case w.StatusCode == http.StatusTooManyRequests:
			seconds, _ := strconv.Atoi(w.Header.Get("Retry-After"))
			select {
			case <-ctx.Done():
				return refusal(w, b)
			case <-time.After(time.Duration(max(1, seconds)) * time.Second):
			}
			continue
		case w.StatusCode >= http.StatusMultipleChoices:
			return refusal(w, b)
		}
		if text, ok := answer.(*string); ok {
			*text = string(b)
		} else if answer != nil {
			err = json.Unmarshal(b, answer)
		}
		return err
	}
}

func refusal(w *http.Response, body []byte) error {
	s := status{}
	if json.Unmarshal(body, &s) != nil || s.Message == "" { // a proxy's, perhaps
		s.Message = w.Status + ": " + strings.TrimSpace(string(body[:min(len(body), 500)]))
	}
	s.Code = w.StatusCode
	return &s
}
