package replay

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fake is a testing.TB that records failures.
type fake struct {
	testing.TB
	mu       sync.Mutex
	said     []string
	cleanups []func()
}

func (f *fake) Helper()          {}
func (f *fake) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fake) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, fmt.Sprintf(format, args...))
}
func (f *fake) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// failures returns the failures of a test that runs run.
func failures(run func(t testing.TB)) string {
	f := &fake{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, c := range f.cleanups {
				c()
			}
		}()
		run(f)
	}()
	<-done
	return strings.Join(f.said, "\n")
}

func want(t *testing.T, said string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(said, p) {
			t.Errorf("failed with %q, which lacks %q", said, p)
		}
	}
	if len(parts) == 0 && said != "" {
		t.Errorf("failed with %q", said)
	}
}

// ask makes a request without keeping the connection.
func ask(t *testing.T, method, url, kind, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("User-Agent", "Sia-Agent")
	req.SetBasicAuth("", "secret")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

const (
	form   = "application/x-www-form-urlencoded"
	upload = "upload one: 1 data + 2 parity pieces; source is a local path of the renter"
	poll   = "poll file one until uploadprogress 100 and redundancy 3"
	source = "source=%2Ftmp%2Frec%2Fsid%2Fone&datapieces=1&paritypieces=2"
)

// TestFailures checks that an unexpected request fails the test, and so does a missing one.
func TestFailures(t *testing.T) {
	rec := Load(t, "testdata/exchanges.jsonl")
	const path = "/renter/upload/one"
	post := func(path, kind, body string) func(string) {
		return func(url string) { ask(t, "POST", url+path, kind, body) }
	}
	with := func(change func(*http.Request)) func(string) {
		return func(url string) {
			req, _ := http.NewRequest("POST", url+path, strings.NewReader(source))
			req.Header.Set("Content-Type", form)
			change(req)
			(&http.Client{}).Do(req)
		}
	}
	next := []string{"unexpected request", "expected next", "POST /renter/upload/one", upload}
	secret := func(r *http.Request) { r.SetBasicAuth("", "secret"); r.Header.Set("User-Agent", "Sia-Agent") }
	login := Steps(rec, upload)
	login[0].Header = http.Header{"Content-Type": {form}, "Authorization": {"basic <redacted>"}}
	for name, c := range map[string]struct {
		steps []Exchange
		opts  []Option
		call  func(url string)
		want  []string
	}{
		"path":   {Steps(rec, upload, poll), nil, post("/renter/upload/two", form, source), next},
		"method": {Steps(rec, upload, poll), nil, func(url string) { ask(t, "PUT", url+path, form, source) }, next},
		"query":  {Steps(rec, upload, poll), nil, post(path+"?force=true", form, source), next},
		"order":  {Steps(rec, upload, poll), nil, func(url string) { ask(t, "GET", url+"/renter/file/one", "", "") }, next},
		"none of them": {Optional(Steps(rec, poll)), []Option{ByPath()}, post("/else", form, ""),
			[]string{"unexpected request", "expected next", "GET /renter/file/one"}},
		"one is missing": {Steps(rec, upload, poll)[:2], nil, post(path, form, source),
			[]string{"was not asked for", poll, "2 of 2"}},
		"an optional one is missing": {Optional(Steps(rec, upload)), nil, func(string) {}, nil},
		"body": {Steps(rec, upload), nil, post(path, form, "source=%2Ftmp%2Fother&datapieces=1&paritypieces=2"),
			[]string{"has the body", upload}},
		"content type": {Steps(rec, upload), nil, post(path, "text/plain", source), []string{"header Content-Type"}},
		"range": {Steps(rec, upload), nil, with(func(r *http.Request) { secret(r); r.Header.Set("Range", "bytes=0-1") }),
			[]string{"header Range"}},
		"password": {Steps(rec, upload), []Option{Login("", "other")}, post(path, form, source),
			[]string{"another password"}},
		"no login": {login, nil, with(func(*http.Request) {}), []string{"no login", upload}},
		"user agent": {Steps(rec, upload), nil, with(func(r *http.Request) { r.SetBasicAuth("", "secret") }),
			[]string{"header User-Agent", "Sia-Agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, failures(func(tb testing.TB) { c.call(Serve(tb, c.steps, c.opts...).URL) }), c.want...)
		})
	}
}

// TestOpaqueBodies checks a request whose body was recorded as a hash.
func TestOpaqueBodies(t *testing.T) {
	add := Steps(Load(t, "testdata/exchanges.jsonl"), "1KiB-v1-raw-256k-pin")
	made := Made("plimsoll/kubo/1KiB", 1024)
	other := bytes.Clone(made)
	other[7] ^= 1
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	p, _ := w.CreateFormFile("file", "x")
	p.Write(other)
	w.Close()
	want(t, failures(func(tb testing.TB) {
		ask(t, "POST", Serve(tb, add).URL+"/api/v0/add?"+add[0].Query.Encode(), w.FormDataContentType(), b.String())
	}), "sends 1024 bytes", Sum(other), Sum(made))
}
