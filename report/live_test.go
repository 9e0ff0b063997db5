package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

func get(t *testing.T, h http.Handler, path, host string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest("GET", path, nil)
	req.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// wantStatus checks the status of an answer, and returns its text.
func wantStatus(t *testing.T, h http.Handler, path, host string, want int) string {
	t.Helper()
	w := get(t, h, path, host)
	if w.Code != want {
		t.Errorf("%s of %q: status %d, want %d:\n%.200s", path, host, w.Code, want, w.Body)
	}
	return w.Body.String()
}

func TestLiveAnswersOnlyLoopbackNames(t *testing.T) {
	h := Live(facts.Unpack(t, "retrieve"))
	for _, host := range []string{"localhost", "localhost:7117", "127.0.0.1:7117", "[::1]:7117", "[::1]"} {
		wantStatus(t, h, "/", host, http.StatusOK)
	}
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example:7117", "10.0.0.1", "",
		"localhost.evil.example"} {
		for _, path := range []string{"/", "/metrics", "/events"} {
			wantStatus(t, h, path, host, http.StatusForbidden)
		}
	}
	wantStatus(t, h, "/run.db", "localhost", http.StatusNotFound)
}

func TestLiveMetrics(t *testing.T) {
	body := wantStatus(t, Live(facts.Unpack(t, "retrieve")), "/metrics", "localhost", http.StatusOK)
	contains(t, body, `plimsoll_trials{state="valid"} 63`, `plimsoll_trials{state="invalid"} 1`,
		`plimsoll_operations_total{outcome="error",system="boxo"}`, `plimsoll_received_bytes_total{system="nginx"}`,
		`plimsoll_throughput_bytes_per_second{cell="c001",system=`, `plimsoll_ttfb_p50_seconds{cell="c001"`)
}

// unfinished is a run that goes on: some of its trials are over.
func unfinished(t *testing.T) (dir string, run *record.Run) {
	dir, run, plan := synthetic.Create(t, smallFile)
	t.Cleanup(func() { run.Close() })
	must(t, run.Event(record.Event{At: time.Now(), Kind: "phase", What: "run begins"}))
	for _, cell := range plan.Cells[:3] {
		w, err := run.Begin(cell.ID, 0, false, time.Now())
		must(t, err)
		must(t, w.Ops([]record.Op{{Kind: record.OpRange, Length: 1000, Bytes: 1000, FirstByte: 1, LastByte: 1e9}}))
		must(t, w.End(record.Trial{Seconds: 1, Metrics: map[string]float64{"throughput": 1000}}))
	}
	must(t, run.Flush())
	return dir, run
}

// While the run goes on the page follows it; when it ends, so does the stream.
func TestLiveFollowsARun(t *testing.T) {
	t.Parallel()
	dir, run := unfinished(t)
	srv := httptest.NewServer(Live(dir))
	defer srv.Close()
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Get(srv.URL + "/events")
	must(t, err)
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	var mains []string
	var names []string
	name := ""
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 32<<20)
	for name != "end" && in.Scan() {
		switch kind, text, _ := strings.Cut(in.Text(), ": "); {
		case kind == "event":
			name = text
			names = append(names, name)
		case kind == "data" && name == "main":
			var html string
			must(t, json.Unmarshal([]byte(text), &html))
			mains = append(mains, html)
			if len(mains) == 1 {
				must(t, run.Event(record.Event{At: time.Now(), Kind: "phase", What: "run ends"}))
				must(t, run.Close())
			}
		}
	}
	if len(mains) < 2 || names[len(names)-1] != "end" {
		t.Fatalf("events %v", names)
	}
	if !strings.Contains(mains[0], ">running, ") || strings.Contains(mains[len(mains)-1], ">running, ") ||
		!strings.Contains(mains[len(mains)-1], ">partial, ") {
		t.Error("the page did not follow the run's state")
	}
}

// A browser that is there before the run is waits for it; one that outlives it does not.
func TestLiveBeforeAndAfterTheRun(t *testing.T) {
	t.Parallel()
	dir, _ := unfinished(t)
	link := filepath.Join(t.TempDir(), "run")
	h := Live(link)
	page := func(code int, refreshes bool) {
		t.Helper()
		text := wantStatus(t, h, "/", "localhost", code)
		if strings.Contains(text, `http-equiv="refresh"`) != refreshes {
			t.Errorf("it refreshes itself: %t", !refreshes)
		}
	}
	page(http.StatusOK, true)
	must(t, os.Symlink(dir, link))
	page(http.StatusOK, false)
	must(t, os.Remove(link))
	time.Sleep(refresh/2 + 10*time.Millisecond) // until then the last look serves
	page(http.StatusInternalServerError, false)
}

// What a running trial has carried is reported while it runs, long transfers and all.
func TestLiveCountsTheRunningTrial(t *testing.T) {
	dir, run, plan := synthetic.Create(t, smallFile)
	defer run.Close()
	w, err := run.Begin(plan.Cells[0].ID, 0, false, time.Now())
	must(t, err)
	h := Live(dir)
	for n := 1; n <= 3; n++ {
		must(t, w.Ops([]record.Op{{Kind: record.OpRange, Length: 1000, Bytes: 1000, FirstByte: 1,
			LastByte: int64(n) * 30e9}}))
		must(t, run.Flush())
		system := plan.Cells[0].System
		contains(t, wantStatus(t, h, "/metrics", "localhost", http.StatusOK),
			fmt.Sprintf("plimsoll_operations_total{outcome=\"ok\",system=%q} %d\n", system, n),
			fmt.Sprintf("plimsoll_received_bytes_total{system=%q} %d\n", system, 1000*n))
	}
	v, err := (&live{follower: &follower{dir: dir}}).look()
	must(t, err)
	if !strings.HasSuffix(v.progress, ": 3 operations, 3.00 kB") {
		t.Errorf("progress %q", v.progress)
	}
}

// The longer a report takes, the more seldom it is computed, however often the run
// is looked at and however much changes.
func TestLiveRestsBetweenReports(t *testing.T) {
	for _, took := range []time.Duration{time.Millisecond, 3 * time.Second} {
		l, now, built := &follower{took: took}, time.Unix(1e9, 0), 0
		const looks = 1000
		for range looks { // one a second, and each sees a change
			if now = now.Add(time.Second); l.due(now) {
				now = now.Add(took)
				l.built = now
				built++
			}
		}
		if busy := time.Duration(built) * took; built == 0 || busy > now.Sub(time.Unix(1e9, 0))/rest ||
			took < 100*time.Millisecond && built < looks {
			t.Errorf("a report takes %v: %d of %d looks computed one, %v in %v", took, built, looks, busy,
				now.Sub(time.Unix(1e9, 0)))
		}
	}
}

// The end of a run is visible at once, also if it was killed.
func TestLiveSeesTheEndOfAKilledRun(t *testing.T) {
	dir, run := unfinished(t)
	l := &live{follower: &follower{dir: dir}}
	v, err := l.look()
	must(t, err)
	if v.ended() {
		t.Error("it goes on")
	}
	must(t, run.Close()) // without an event
	l.seen, l.took = time.Time{}, 1e5*time.Hour
	if v, err = l.look(); err != nil || !v.ended() || v.report.Run.State != "partial" {
		t.Errorf("%v, %s", err, v.report.Run.State)
	}
}

// A scrape computes no report soon after another, and names no metric after the table's columns.
func TestScrapesRest(t *testing.T) {
	dir, run := unfinished(t)
	f := &follower{dir: dir}
	h := metrics(f)
	scrape := func() string { return wantStatus(t, h, "/metrics", "localhost", http.StatusOK) }
	scrape()
	first := f.report
	w, err := run.Begin(first.Cells[3].ID, 0, false, time.Now())
	must(t, err)
	must(t, w.End(record.Trial{Seconds: 1}))
	f.took = time.Hour
	if scrape(); f.report != first {
		t.Error("a report after an hour's report")
	}
	f.took = 0
	contains(t, scrape(), "plimsoll_trials{state=\"valid\"} 4\n")
	if name, _ := newCollector(f).metricOf("reading"); name != "plimsoll_reading" {
		t.Errorf("a reading is exported as %s", name)
	}
}

// Numbers that are older than the run say of when they are.
func TestLiveSaysOfWhenItsNumbersAre(t *testing.T) {
	dir, run := unfinished(t)
	l := &live{follower: &follower{dir: dir}}
	v, err := l.look()
	must(t, err)
	if strings.Contains(v.progress, "as of") {
		t.Errorf("numbers of now: %q", v.progress)
	}
	must(t, run.Event(record.Event{At: time.Now(), Kind: "phase", What: "something"}))
	must(t, run.Flush())
	l.seen, l.built, l.took = time.Time{}, time.Date(2026, 1, 2, 10, 41, 7, 0, time.UTC), 1e5*time.Hour
	v, err = l.look()
	must(t, err)
	if !strings.Contains(v.progress, "numbers as of 10:41:07 UTC") {
		t.Errorf("numbers of before: %q", v.progress)
	}
}

const smallFile = `
scenario: retrieve
systems: [nginx, boxo]
link: {rate: 1Gbit, delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 8], range: 1MiB, requests: 60}
repetitions: 1
`

// Nothing is served without the token, in any of its three places, and a browser
// that has opened the address once goes on with its cookie.
func TestToken(t *testing.T) {
	const token = "RIGHT"
	h := WithToken(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}), token)
	status := func(want int, query string, header http.Header) []*http.Cookie {
		t.Helper()
		req := httptest.NewRequest("GET", "http://127.0.0.1:7117/run/a/"+query, nil)
		req.Header = header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		cookies := w.Result().Cookies()
		if w.Code != want || want == http.StatusForbidden && len(cookies) > 0 {
			t.Errorf("%s with %v: %d, want %d; cookies %v", query, header, w.Code, want, cookies)
		}
		return cookies
	}
	for _, wrong := range []string{"", "?token=", "?token=WRONG", "?token=RIGHT2", "?token=RIGH"} {
		status(http.StatusForbidden, wrong, nil)
	}
	kept := status(http.StatusNoContent, "?token="+token, nil)
	if len(kept) != 1 || !kept[0].HttpOnly || kept[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("cookies %v", kept)
	}
	for value, want := range map[string]int{kept[0].Value: http.StatusNoContent, "WRONG": http.StatusForbidden} {
		status(want, "", http.Header{"Cookie": {kept[0].Name + "=" + value}})
	}
	for bearer, want := range map[string]int{"Bearer " + token: http.StatusNoContent,
		"Bearer WRONG": http.StatusForbidden, "Bearer ": http.StatusForbidden} {
		status(want, "", http.Header{"Authorization": {bearer}})
	}
}
