package s3

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	for name, opt := range map[string]system.Options{
		"plain": nil,
		"https": {"tls": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Brief: opt != nil})
		})
	}
}

var must = systemtest.Must

// server starts a versitygw with two objects under "data/", and returns options to attach to it.
func server(t *testing.T) (c system.Cluster, opt system.Options) {
	t.Helper()
	systemtest.Need(t, System{}, nil)
	c = systemtest.Start(t, System{}, nil, systemtest.Hosts(t, 2))
	n := c.Nodes()[0].(started)
	n.at.prefix = "data/"
	for _, name := range []string{"a", "b/c d"} {
		_, err := n.Put(systemtest.Context(t), name, 300_000, systemtest.Content(name, 300_000))
		must(t, err)
	}
	t.Setenv("PLIMSOLL_TEST_ACCESS", n.at.access)
	t.Setenv("PLIMSOLL_TEST_SECRET", n.at.secret)
	return c, system.Options{
		"endpoint": n.at.url.String(), "prefix": "data/",
		"access_key": "PLIMSOLL_TEST_ACCESS", "secret_key": "PLIMSOLL_TEST_SECRET",
	}
}

func attach(t *testing.T, opt system.Options, write bool) (system.Store, error) {
	t.Helper()
	c, err := systemtest.Attach(t, System{}, opt, write)
	if err != nil {
		return nil, err
	}
	return c.Nodes()[0].(system.Store), nil
}

func TestAttachConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: systemtest.Truths{Without: []string{"stats"}},
		Attach: func(t *testing.T) (system.Options, func()) {
			c, opt := server(t)
			return opt, func() { c.Stop(systemtest.Context(t)) }
		}})
}

func TestAttachDeletesOnlyItsOwn(t *testing.T) {
	_, opt := server(t)
	n, err := attach(t, opt, true)
	must(t, err)
	if all, err := system.Found(t.Context(), n); err != nil || len(all) > 0 {
		t.Errorf("a node that may write tells the objects of others as if they were to be read: %v, %v", all, err)
	}
	if err := n.(system.Deleter).Delete(t.Context(), "data/a"); !errors.Is(err, system.ErrReadOnly) {
		t.Errorf("delete of someone's object: %v", err)
	}
	if err := n.(system.Updater).Update(t.Context(), "data/a", 1, strings.NewReader("x")); !errors.Is(err,
		system.ErrReadOnly) {
		t.Errorf("update of someone's object: %v", err)
	}
	_, err = n.Put(t.Context(), "a", 3, strings.NewReader("new")) // beside a foreign object
	must(t, err)
	ref, err := n.Put(t.Context(), "mine/of all", 4, strings.NewReader("mine"))
	if err != nil || ref != n.(system.Namer).Named("mine/of all") || !strings.HasSuffix(string(ref), "-mine/of=20all") {
		t.Fatalf("put: %q, %v", ref, err)
	}
	if o, err := n.(system.Stater).Stat(t.Context(), ref); err != nil || o.Name != "mine/of all" {
		t.Errorf("%+v, %v", o, err)
	}
	must(t, n.(system.Updater).Update(t.Context(), ref, 3, strings.NewReader("NEW")))
	must(t, n.(system.Deleter).Delete(t.Context(), ref))
	if all, err := system.All(t.Context(), n.(system.Lister)); err != nil || len(all) != 1 || all[0].Name != "a" {
		t.Errorf("it lists %+v, %v", all, err)
	}
	var kept bytes.Buffer
	if err := n.Get(t.Context(), "data/a", &kept); err != nil || !bytes.Equal(kept.Bytes(),
		systemtest.Bytes("a", 300_000)) {
		t.Errorf("someone's object: %d bytes, %v", kept.Len(), err)
	}
}

func TestAttachErrors(t *testing.T) {
	_, opt := server(t)
	with := func(k, v string) system.Options {
		o := maps.Clone(opt)
		o[k] = v
		return o
	}
	t.Setenv("PLIMSOLL_TEST_WRONG", "wrong")
	for want, opt := range map[string]system.Options{
		`bucket "none"`:      with("bucket", "none"),
		"status 403":         with("secret_key", "PLIMSOLL_TEST_WRONG"),
		"only one is set":    with("secret_key", "PLIMSOLL_TEST_UNSET"),
		"not the URL":        with("endpoint", "s3.example.org"),
		"connection refused": with("endpoint", "http://127.0.0.1:1"),
	} {
		_, err := attach(t, opt, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestSignaturesStayOutOfErrors(t *testing.T) {
	c, opt := server(t)
	n, err := attach(t, opt, false)
	must(t, err)
	target, err := n.(system.HTTPServer).Target("data/a")
	must(t, err)
	if target.URL.Query().Get("X-Amz-Signature") == "" {
		t.Fatalf("not presigned: %s", target.URL)
	}
	errs := []error{
		n.Get(t.Context(), "data/none", io.Discard),
		n.(system.Ranger).GetRange(t.Context(), "data/a", 1<<40, 1, io.Discard),
	}
	must(t, c.Stop(systemtest.Context(t)))
	for _, err := range append(errs, n.Get(t.Context(), "data/a", io.Discard),
		n.(system.Healther).Health(t.Context())) {
		if err == nil || strings.Contains(err.Error(), "Amz") {
			t.Errorf("error %v", err)
		}
	}
}

// noOps is a sink for which only the counts matter.
// A load gets what was stored, also where the server keeps the encoding of the upload in its answers.
func TestLoad(t *testing.T) {
	c, _ := server(t)
	target, err := c.Nodes()[0].(started).Target("data/a")
	must(t, err)
	file := filepath.Join(t.TempDir(), "a")
	must(t, os.WriteFile(file, systemtest.Bytes("a", 300_000), 0o600))
	for _, size := range []int64{0, 10_000} {
		sum := record.NewSummary()
		_, err := httpload.Run(t.Context(), httpload.Spec{Objects: []httpload.Object{{URL: target.URL.String(),
			Size: 300_000, Header: target.Header, Reference: file}}, Concurrency: 2, Requests: 6, Range: size}, sum.Ops)
		if n := sum.Counts(); err != nil || n.Outcomes[record.OK] != 6 {
			t.Errorf("ranges of %d bytes: %v, %v, %v", size, n.OutcomeMap(), n.Classes, err)
		}
	}
}
