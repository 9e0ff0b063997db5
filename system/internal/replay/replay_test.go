package replay

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fake is a testing.TB that keeps what it is told.
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

// failures is what a test would have been failed with that did run.
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

// ask makes a request without keeping connections.
func ask(t *testing.T, method, url, kind, body string) (int, string, *http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	return do(req)
}

func do(req *http.Request) (int, string, *http.Response, error) {
	req.Header.Set("User-Agent", "Sia-Agent")
	req.SetBasicAuth("", "secret")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp, err
}

const (
	form   = "application/x-www-form-urlencoded"
	upload = "upload one: 1 data + 2 parity pieces; source is a local path of the renter"
	poll   = "poll file one until uploadprogress 100 and redundancy 3"
	source = "source=%2Ftmp%2Frec%2Fsid%2Fone&datapieces=1&paritypieces=2"
)

func TestServesInOrder(t *testing.T) {
	rec := Load(t, "testdata/exchanges.jsonl")
	want(t, failures(func(tb testing.TB) {
		s := Serve(tb, Steps(rec, upload, poll), Login("", "secret"))
		// The fields of a form have no order.
		if status, body, _, err := ask(t, "POST", s.URL+"/renter/upload/one", form,
			"datapieces=1&paritypieces=2&source=%2Ftmp%2Frec%2Fsid%2Fone"); status != 204 || body != "" || err != nil {
			t.Errorf("status %d, body %q, %v", status, body, err)
		}
		for i, redundancy := range []string{`"redundancy":0`, `"redundancy":0`, `"redundancy":0`, `"redundancy":3`} {
			status, body, resp, err := ask(t, "GET", s.URL+"/renter/file/one", "", "")
			if status != 200 || !strings.Contains(body, redundancy) || err != nil ||
				!strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
				t.Errorf("poll %d: status %d, body %q, %v", i, status, body, err)
			}
			if !strings.Contains(body, `"uid":15794426714378006184`) {
				t.Errorf("a number lost digits: %s", body)
			}
		}
	}))
}

func TestUnexpectedRequestFails(t *testing.T) {
	rec := Load(t, "testdata/exchanges.jsonl")
	for name, call := range map[string]func(url string){
		"path":   func(url string) { ask(t, "POST", url+"/renter/upload/two", form, source) },
		"method": func(url string) { ask(t, "PUT", url+"/renter/upload/one", form, source) },
		"query":  func(url string) { ask(t, "POST", url+"/renter/upload/one?force=true", form, source) },
		"order":  func(url string) { ask(t, "GET", url+"/renter/file/one", "", "") },
	} {
		t.Run(name, func(t *testing.T) {
			want(t, failures(func(tb testing.TB) { call(Serve(tb, Steps(rec, upload, poll)).URL) }),
				"unexpected request", "expected next", "POST /renter/upload/one", upload)
		})
	}
	want(t, failures(func(tb testing.TB) {
		ask(t, "GET", Serve(tb, Optional(Steps(rec, poll)), ByPath()).URL+"/else", "", "")
	}), "unexpected request", "in any order", "GET /renter/file/one")
}

func TestMissingStepFails(t *testing.T) {
	rec := Load(t, "testdata/exchanges.jsonl")
	want(t, failures(func(tb testing.TB) {
		s := Serve(tb, Steps(rec, upload, poll)[:2])
		ask(t, "POST", s.URL+"/renter/upload/one", form, source)
	}), "was not asked for", poll, "2 of 2")
	want(t, failures(func(tb testing.TB) { Serve(tb, Optional(Steps(rec, upload))) }))
}

func TestWrongRequestFails(t *testing.T) {
	rec := Load(t, "testdata/exchanges.jsonl")
	url := "/renter/upload/one"
	for part, call := range map[string]func(url string){
		"has the body": func(base string) {
			ask(t, "POST", base+url, form, "source=%2Ftmp%2Fother&datapieces=1&paritypieces=2")
		},
		"header Content-Type": func(base string) { ask(t, "POST", base+url, "text/plain", source) },
		"header Range": func(base string) {
			req, _ := http.NewRequest("POST", base+url, strings.NewReader(source))
			req.Header.Set("Content-Type", form)
			req.Header.Set("Range", "bytes=0-1")
			do(req)
		},
		"another password": func(base string) {
			ask(t, "POST", base+url, form, source)
		},
		"no login": func(base string) {
			http.Post(base+url, form, strings.NewReader(source)) // and no User-Agent
		},
	} {
		t.Run(part, func(t *testing.T) {
			said := failures(func(tb testing.TB) {
				opts := []Option{}
				if part == "another password" {
					opts = append(opts, Login("", "other"))
				}
				rec := Steps(rec, upload)
				if part == "no login" {
					rec[0].Header = http.Header{"Content-Type": {form}, "Authorization": {"basic <redacted>"}}
				}
				call(Serve(tb, rec, opts...).URL)
			})
			want(t, said, part, upload)
		})
	}
	want(t, failures(func(tb testing.TB) {
		req, _ := http.NewRequest("POST", Serve(tb, Steps(rec, upload)).URL+url, strings.NewReader(source))
		req.Header.Set("Content-Type", form)
		req.SetBasicAuth("", "secret")
		(&http.Client{}).Do(req)
	}), "header User-Agent", "Sia-Agent")
}

func TestOpaqueBodies(t *testing.T) {
	rec := Load(t, "testdata/exchanges.jsonl")
	add := Steps(rec, "1KiB-v1-raw-256k-pin")
	send := func(url string, content []byte) (int, string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		p, _ := w.CreateFormFile("file", "x")
		p.Write(content)
		w.Close()
		status, body, _, err := ask(t, "POST", url+"/api/v0/add?"+add[0].Query.Encode(), w.FormDataContentType(),
			b.String())
		if err != nil {
			t.Error(err)
		}
		return status, body
	}
	made := Made("plimsoll/kubo/1KiB", 1024)
	want(t, failures(func(tb testing.TB) {
		if status, body := send(Serve(tb, add).URL, made); status != 200 || !strings.Contains(body, `"Size":"1024"`) {
			t.Errorf("status %d, %q", status, body)
		}
	}))
	other := append([]byte{}, made...)
	other[7] ^= 1
	want(t, failures(func(tb testing.TB) { send(Serve(tb, add).URL, other) }), "sends 1024 bytes", Sum(other),
		Sum(made))
	want(t, failures(func(tb testing.TB) { send(Serve(tb, add, Instead(Sum(made), other)).URL, other) }))
}
