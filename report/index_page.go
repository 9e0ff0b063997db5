package report

import (
	"bytes"
	"net/http"
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
	var b bytes.Buffer
	index, err := readIndex(s.root, "run/%s/")
	if err == nil {
		err = page.WriteIndex(&b, index)
	}
	if err != nil {
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
	ids, err := FindRuns(s.root)
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
