package replay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Option changes how a recording is served.
type Option func(*Server)

// ByPath allows requests in any order. Those with the same method, path and query are answered in
// the order of the recording.
func ByPath() Option { return func(s *Server) { s.byPath = true } }

// Content supplies the bytes of bodies that were recorded as hashes. The hash must match.
func Content(bodies ...[]byte) Option {
	return func(s *Server) {
		for _, body := range bodies {
			s.contents[Sum(body)] = body
		}
	}
}

// Instead supplies bytes that replace, in requests and answers, the lost ones with the recorded
// hash. The length must match.
func Instead(sha256 string, body []byte) Option {
	return func(s *Server) { s.contents[sha256] = body }
}

// Let replaces text in paths, queries, headers and recorded bodies: a placeholder such as {REPO1},
// or the name of an object.
func Let(old, new string) Option {
	inJSON := func(text string) string {
		quoted, _ := json.Marshal(text) // strings cannot fail
		return string(quoted[1 : len(quoted)-1])
	}
	return func(s *Server) { s.replace = append(s.replace, inJSON(old), inJSON(new)) }
}

// Login sets the login that is required in requests that were recorded with a (redacted) login.
func Login(user, password string) Option {
	return func(s *Server) { s.login = &[2]string{user, password} }
}

// Server replays exchanges.
type Server struct {
	URL string

	t        testing.TB
	http     *httptest.Server
	byPath   bool
	contents contents
	replace  []string
	login    *[2]string

	mu    sync.Mutex
	steps []*step
	at    int // index of the latest requested step
}

// step is an exchange to replay.
type step struct {
	Exchange
	body []byte // of the answer
	used int    // number of requests for it
}

// Serve starts a server that ends with the test. The test then fails if an exchange that is not
// optional was not requested.
func Serve(t testing.TB, exchanges []Exchange, opts ...Option) *Server {
	t.Helper()
	s := &Server{t: t, at: -1, contents: contents{}}
	for _, o := range opts {
		o(s)
	}
	for i, e := range exchanges {
		e = s.filled(e)
		body, err := s.contents.bytes(e.Answer.Body, e.Answer.Header)
		if err != nil {
			t.Fatalf("replay: step %q (%d): answer: %v", e.Step, i+1, err)
		}
		s.steps = append(s.steps, &step{Exchange: e, body: body})
	}
	s.http = httptest.NewUnstartedServer(s)
	// Otherwise the client's transport would retry a request on a new connection.
	if slices.ContainsFunc(exchanges, func(e Exchange) bool { return e.Answer.End == Refused }) {
		s.http.Config.SetKeepAlivesEnabled(false)
	}
	s.http.Start()
	s.URL = s.http.URL
	t.Cleanup(s.close)
	return s
}

// filled returns e with the placeholders replaced in its JSON.
func (s *Server) filled(e Exchange) Exchange {
	text, err := json.Marshal(e)
	if err != nil {
		s.t.Fatalf("replay: step %q: %v", e.Step, err)
	}
	out := Exchange{Repeat: e.Repeat, Optional: e.Optional}
	if err := json.Unmarshal([]byte(strings.NewReplacer(s.replace...).Replace(string(text))), &out); err != nil {
		s.t.Fatalf("replay: step %q: %v", e.Step, err)
	}
	return out
}

// close ends the server and reports exchanges that were not requested.
func (s *Server) close() {
	s.t.Helper()
	s.http.CloseClientConnections()
	s.http.Close()
	for i, e := range s.steps {
		if e.used == 0 && !e.Optional {
			s.t.Errorf("replay: step %q (%d of %d) was not asked for: %s", e.Step, i+1, len(s.steps), e.key())
		}
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := s.next(r)
	if err == nil {
		if err = s.check(e.Exchange, r); err != nil {
			err = fmt.Errorf("step %q: %s: %w", e.Step, keyOf(r), err)
		}
	}
	if err != nil {
		s.t.Errorf("replay: %v", err)
		http.Error(w, "replay: "+err.Error(), http.StatusNotImplemented)
		return
	}
	s.answer(w, r, e)
}

// next returns the exchange that r belongs to.
func (s *Server) next(r *http.Request) (*step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, from := keyOf(r), s.at+1
	if s.byPath {
		from = 0
	}
	var again *step
	for i, e := range s.steps[from:] {
		switch {
		case e.key() == asked && (!s.byPath || e.used == 0):
			e.used++
			s.at = max(s.at, from+i)
			return e, nil
		case e.key() == asked:
			again = e
		}
		if !s.byPath && !e.Optional {
			break
		}
	}
	for i := s.at; i >= 0 && !s.byPath && s.steps[i].Repeat && again == nil; i-- { // the latest steps
		if s.steps[i].key() == asked {
			again = s.steps[i]
		}
	}
	if again == nil || !again.Repeat {
		return nil, fmt.Errorf("unexpected request\n\t%s\nexpected next:%s", asked, s.expected())
	}
	again.used++
	return again, nil
}

// expected lists the remaining exchanges. With ByPath, these are all unused ones.
func (s *Server) expected() string {
	var b strings.Builder
	for i, e := range s.steps {
		if e.used == 0 && (s.byPath || i > s.at) {
			fmt.Fprintf(&b, "\n\t%s (step %q)", e.key(), e.Step)
		}
	}
	return b.String() + "\n\tnothing more"
}

func keyOf(r *http.Request) string { return key(r.Method, r.URL.EscapedPath(), r.URL.Query()) }
