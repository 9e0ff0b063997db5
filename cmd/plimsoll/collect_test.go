package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
)

// recordedSiad is a siad that answers each report as it was recorded, and every
// third time that of the files with a page. It must be asked for nothing but reports.
func recordedSiad(t *testing.T) (url string) {
	t.Helper()
	answers := map[string]string{
		"/renter/uploadready": `{"ready":true,"datapieces":1,"paritypieces":2}`,
	}
	for _, file := range []string{"attach", "files", "reports", "monitor"} {
		recorded := mustRead(t, filepath.Join("..", "..", "system", "siad", "testdata", file+".jsonl"))
		for lines := json.NewDecoder(bytes.NewReader(recorded)); lines.More(); {
			var e struct {
				Step, Path string
				Answer     struct {
					Status int
					Body   struct{ Text string }
				}
			}
			must(t, lines.Decode(&e))
			if (e.Step == "report" || e.Step == "renter/files" || e.Path == "/daemon/version") &&
				e.Answer.Status == 200 && answers[e.Path] == "" {
				answers[e.Path] = e.Answer.Body.Text
			}
		}
	}
	var files atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, known := answers[r.URL.Path]
		switch {
		case r.Method == "GET" && strings.HasPrefix(r.URL.Path, "/renter/download/"):
			w.WriteHeader(http.StatusInternalServerError) // the check of the password
		case r.Method != "GET" || !known:
			t.Errorf("siad was asked for %s %s", r.Method, r.URL.Path)
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Path == "/renter/files" && files.Add(1)%3 == 0:
			io.WriteString(w, "<html>502 Bad Gateway</html>")
		default:
			io.WriteString(w, body)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestCollect watches a siad that was attached to, without any allowance, and
// exports what it saw.
func TestCollect(t *testing.T) {
	t.Parallel()
	url := recordedSiad(t)
	dir := filepath.Join(t.TempDir(), "run")
	var out, errs bytes.Buffer
	code := run([]string{"collect", "siad", "--with", "url=" + url, "--every", "300ms", "--for", "1.6s", "--out", dir,
		"--listen", "none"}, strings.NewReader(""), &out, &errs)
	if code != 0 {
		t.Fatalf("status %d\n%s\n%s", code, out.String(), errs.String())
	}
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	gaps, polls := 0, 0
	for poll, err := range r.Polls(1) {
		must(t, err)
		for _, call := range poll.Calls {
			if call.Name == "/renter/files" {
				if polls++; call.Error != "" {
					gaps++
				}
			}
		}
	}
	if gaps == 0 || gaps == polls {
		t.Errorf("%d gaps in %d polls", gaps, polls)
	}
	if recomputed(t, dir) != 1 {
		t.Error("there are no metrics")
	}
	holdsNot(t, dir, siaPassword, base64.StdEncoding.EncodeToString([]byte(":"+siaPassword)))
	w := httptest.NewRecorder()
	report.Metrics(dir).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if body := w.Body.String(); !strings.Contains(body,
		`plimsoll_collect_call_errors_total{call="/renter/files",reason="malformed answer",system="siad"} `+
			fmt.Sprint(gaps)) {
		t.Errorf("%s", body)
	}
}

// holdsNot looks for secrets in every file of a run directory.
func holdsNot(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		n++
		b, err := os.ReadFile(path)
		for _, secret := range secrets {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds %q", path, secret)
			}
		}
		return err
	})
	if err != nil || n < 3 {
		t.Errorf("%d files in %s, %v", n, dir, err)
	}
}

// TestCollectGoesOn: it is interrupted, and goes on in the same trial.
func TestCollectGoesOn(t *testing.T) {
	t.Parallel()
	url := recordedSiad(t)
	dir := filepath.Join(t.TempDir(), "run")
	session := func(args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		var out bytes.Buffer
		p := &program{ui: ui.New(&out, &out), stdin: strings.NewReader(""), stdout: &out, stderr: &out}
		root := p.root()
		root.SetArgs(args)
		if err := root.ExecuteContext(ctx); ui.ExitCode(err) != ui.CodeInterrupted {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
	session("collect", "siad", "--with", "url="+url, "--every", "200ms", "--out", dir, "--listen", "127.0.0.1:0")
	session("resume", dir)
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	trials, err := r.Trials()
	if err != nil || len(trials) != 1 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	next, n, missed := int64(0), 0, 0
	for p, err := range r.Polls(trials[0].ID) {
		must(t, err)
		if p.Seq != next+int64(p.Missed) {
			t.Errorf("poll %d after %d, %d missed", p.Seq, next-1, p.Missed)
		}
		next = p.Seq + 1
		n++
		missed += p.Missed
	}
	if n < 3 { // on a busy machine
		t.Errorf("%d polls, %d missed", n, missed)
	}
}

func TestCollectUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "wants one system"},
		{[]string{"nix"}, "unknown system `nix`"},
		{[]string{"siad", "--with", "url"}, "not key=value"},
		{[]string{"siad", "--with", "nope=1"}, "has no option `nope`"},
		{[]string{"siad", "--every", "often"}, "not a duration"},
		{[]string{"siad", "--with", "url=http://127.0.0.1:1", "--listen", "nonsense"}, "listen"},
	} {
		var out, errs bytes.Buffer
		args := append(append([]string{"collect"}, c.args...), "--out", filepath.Join(t.TempDir(), "run"))
		if code := run(args, strings.NewReader(""), &out, &errs); code != int(ui.CodeUsage) ||
			!strings.Contains(errs.String(), c.want) {
			t.Errorf("%v: status %d, %s, want %q", c.args, code, errs.String(), c.want)
		}
	}
}
