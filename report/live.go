// Package report reads and serves run directories: the page of a run (live while it is
// running), an index of runs, and metrics for Prometheus. Package analysis evaluates runs and
// package page writes the results.
package report

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/page"
)

// refresh is how often a running run is checked for changes.
const refresh = time.Second

// Live serves the page of a run directory, updated by server-sent events during the run, and
// its metrics for Prometheus under /metrics. It answers only requests for a loopback name, so
// that web pages of others cannot read it through their own host names (DNS rebinding); the
// caller must listen on a loopback address. It keeps nothing open between requests; event
// streams end with the run or with their request.
func Live(dir string) http.Handler {
	l := &live{follower: &follower{dir: dir}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", l.page)
	mux.HandleFunc("GET /events", l.events)
	mux.Handle("GET /metrics", metrics(l.follower))
	return loopbackNames(mux)
}

// Metrics serves only the metrics of a run directory for Prometheus under /metrics. It answers
// requests for any host name; the caller restricts access.
func Metrics(dir string) http.Handler { return metrics(&follower{dir: dir}) }

func metrics(f *follower) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(f))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

func loopbackNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host := req.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		switch host {
		case "localhost", "127.0.0.1", "::1", "[::1]":
		default:
			http.Error(w, "this page answers only to localhost, 127.0.0.1 and [::1]", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, req)
	})
}

// follower keeps the report of a run directory for any number of viewers.
type follower struct {
	dir string

	mu     sync.Mutex
	mark   string // of the state of the run that the report is of
	report *analysis.Result
	built  time.Time // when it was computed
	took   time.Duration
}

// rest limits the cost of viewers to 1/rest of one CPU: after computing a report, no other is
// computed for rest times as long.
const rest = 10

// due reports whether a changed report should be computed again now.
func (f *follower) due(at time.Time) bool { return at.Sub(f.built) >= rest*f.took }

// update computes the report again if the run has changed and it is due, and returns the trials and
// the mark of the run as it is now.
func (f *follower) update(run *record.Reader) (trials []record.Trial, mark string, err error) {
	trials, err = run.Trials()
	if err != nil {
		return nil, "", err
	}
	events, err := run.Events()
	if err != nil {
		return nil, "", err
	}
	written := record.Written(f.dir) // false once the run has ended or was killed: the last report
	mark = fmt.Sprint(len(trials)-len(goingOn(trials)), len(events), written)
	if f.report == nil || mark != f.mark && (!written || f.due(time.Now())) {
		begun := time.Now()
		r, err := Build(run, false)
		if err != nil {
			return nil, "", err
		}
		f.report, f.mark, f.built = r, mark, time.Now()
		f.took = f.built.Sub(begun)
	}
	return trials, mark, nil
}

// live renders a run directory, once per change.
type live struct {
	*follower
	seen time.Time // of the last check
	now  view
}

// view is the state of the page at some time.
type view struct {
	report   *analysis.Result
	main     []byte // the page's main element, as a JSON string
	progress string
}

func (v *view) ended() bool { return v.report.Run.State != "running" }

var errStarting = errors.New("the run is starting")

// startingPage is served until the run directory exists, because a browser may be opened
// before.
const startingPage = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="1">
<title>Plimsoll</title><p>The run is starting.</p>
`

// look returns the current view, at most refresh old.
func (l *live) look() (view, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.seen) < refresh/2 && l.now.report != nil {
		return l.now, nil
	}
	if l.report == nil && !IsRun(l.dir) {
		return view{}, errStarting
	}
	run, err := record.Open(l.dir)
	if err != nil {
		return view{}, err
	}
	defer run.Close()
	trials, mark, err := l.update(run)
	if err != nil {
		return view{}, err
	}
	if l.now.report != l.report {
		var b bytes.Buffer
		if err := page.Main(&b, l.report); err != nil {
			return view{}, err
		}
		main, _ := json.Marshal(b.String()) // never fails
		l.now = view{report: l.report, main: main}
	}
	l.now.progress = progress(l.report, goingOn(trials))
	if mark != l.mark {
		l.now.progress += "; numbers as of " + l.built.UTC().Format("15:04:05 UTC")
	}
	l.seen = time.Now()
	return l.now, nil
}

// goingOn returns the running trials.
func goingOn(trials []record.Trial) []record.Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(t record.Trial) bool { return t.State != record.Running })
}

// progress describes in a line what is running.
func progress(r *analysis.Result, trials []record.Trial) string {
	s := fmt.Sprintf("%d of %d trials", r.Run.Done, r.Run.Planned)
	if len(trials) == 0 {
		return s
	}
	running := trials[len(trials)-1]
	ops := int64(0)
	for _, n := range running.Outcomes {
		ops += n
	}
	for _, c := range r.Cells {
		if c.ID == running.Cell {
			s += "; now " + c.System
			if where := r.Frame.Layout.Where(c); where != "" {
				s += ", " + where
			}
			if running.Warmup {
				s += " (warm-up)"
			}
		}
	}
	if ops > 0 {
		s += fmt.Sprintf(": %s, %s", words.Plural(ops, "operation", "operations"),
			words.Show(float64(running.Bytes), "B"))
	}
	return s
}

func (l *live) page(w http.ResponseWriter, _ *http.Request) {
	serve(w, func(to io.Writer) error {
		v, err := l.look()
		switch err {
		case nil:
			return page.HTML(to, v.report, true)
		case errStarting:
			_, err = io.WriteString(to, startingPage)
		}
		return err
	})
}

// serve answers with a page if it is complete.
func serve(w http.ResponseWriter, write func(to io.Writer) error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the viewer is gone: nothing to do
}

// events streams changes until the run has ended or the viewer is gone.
func (l *live) events(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(event, data string) error {
		// A viewer that stops reading must not block us.
		_ = control.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil {
			return err
		}
		return control.Flush()
	}
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	var sent view
	for {
		v, err := l.look()
		if err != nil {
			_ = send("progress", "cannot read the run: "+oneLine(err.Error()))
			return
		}
		if v.report != sent.report && send("main", string(v.main)) != nil ||
			v.progress != sent.progress && send("progress", oneLine(v.progress)) != nil {
			return
		}
		sent = v
		if v.ended() {
			_ = send("end", v.report.Run.State)
			return
		}
		select {
		case <-tick.C:
		case <-req.Context().Done():
			return
		}
	}
}

// oneLine removes line breaks, which would end an event early.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// WithToken serves next to clients with the token: in the address as ?token=…, which a browser
// then keeps in a cookie, or as a bearer token. Every user of the machine can connect to a
// loopback address, but may not be allowed to read the run directory.
func WithToken(next http.Handler, token string) http.Handler {
	same := func(given string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1 }
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// Cookies do not depend on the port, so each server's has its own name.
		name := "plimsoll"
		if _, port, err := net.SplitHostPort(req.Host); err == nil {
			name += "-" + port
		}
		bearer, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		kept := ""
		if c, err := req.Cookie(name); err == nil {
			kept = c.Value
		}
		w.Header().Set("Referrer-Policy", "no-referrer")
		switch {
		case same(req.URL.Query().Get("token")):
			http.SetCookie(w, &http.Cookie{Name: name, Value: token, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteStrictMode})
		case same(kept), same(bearer):
		default:
			http.Error(w, "this needs the token: open the whole address that plimsoll printed, with ?token=…, or "+
				"send `Authorization: Bearer TOKEN`", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, req)
	})
}
