package report

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/plimsoll-project/plimsoll/report/page"
)

// Runs serves an index of the runs below a directory and each
// run's page, live while it goes on. Like [Live] it answers only requests for a
// loopback name. Only paths of runs that it found itself lead anywhere.
func Runs(root string) http.Handler {
	s := &runsServer{root: root, pages: map[string]http.Handler{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /run/{rest...}", s.run)
	return loopbackNames(mux)
}

type runsServer struct {
	root string

	mu    sync.Mutex
	pages map[string]http.Handler // by run: all viewers of one share what is computed of it
}

func (s *runsServer) page(w http.ResponseWriter, req *http.Request) {
	index, err := readIndex(s.root)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var b bytes.Buffer
	if err := index.writePage(&b, s.root, req.URL.Query().Get("scenario"), true); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the viewer is gone: nothing to do
}

// run serves the page of a run and its events.
func (s *runsServer) run(w http.ResponseWriter, req *http.Request) {
	id, file := "", ""
	if i := strings.LastIndexByte(req.PathValue("rest"), '/'); i >= 0 {
		id, file = req.PathValue("rest")[:i], req.PathValue("rest")[i+1:]
	}
	if id == "" || file != "" && file != "events" {
		http.NotFound(w, req)
		return
	}
	// What is asked for must be one of what is found: no path is made of it.
	ids, _, err := FindRuns(s.root)
	if err != nil || !slices.Contains(ids, id) {
		http.NotFound(w, req)
		return
	}
	on := req.Clone(req.Context())
	on.URL.Path, on.URL.RawPath = "/"+file, ""
	s.live(id).ServeHTTP(w, on)
}

func (s *runsServer) live(id string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages[id] == nil {
		s.pages[id] = Live(filepath.Join(s.root, filepath.FromSlash(id)))
	}
	return s.pages[id]
}

// WriteIndex writes an index of the runs below a directory as one page, complete
// like that of a run; its links lead to the runs' report.html.
func WriteIndex(w io.Writer, root string) error {
	index, err := readIndex(root)
	if err != nil {
		return err
	}
	return index.writePage(w, root, "", false)
}

// link leads from the index to a run's page.
func link(id string, served bool) string {
	escaped := (&url.URL{Path: id}).EscapedPath()
	if served {
		return "run/" + escaped + "/"
	}
	return "./" + escaped + "/report.html"
}

func (index *Index) writePage(w io.Writer, root, scenario string, served bool) error {
	// The directory's name alone: the page may be read by those whom the rest of its
	// path does not concern.
	dir, err := filepath.Abs(root)
	if err != nil {
		dir = root
	}
	d := page.Index{Dir: filepath.Base(dir), Scenario: scenario, Served: served, Notes: index.Notes}
	for _, r := range index.Runs {
		if r.Scenario != "" && !slices.Contains(d.Scenarios, r.Scenario) {
			d.Scenarios = append(d.Scenarios, r.Scenario)
		}
		if scenario == "" || r.Scenario == scenario {
			r.Link = link(r.ID, served)
			d.Rows = append(d.Rows, r)
			d.Held = d.Held || r.Gates != ""
		}
	}
	slices.Sort(d.Scenarios)
	return page.WriteIndex(w, d)
}
