package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
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

// compared lists the headers that change the meaning of a request. They must be as recorded, and
// absent if they were not recorded; User-Agent may be present anyway.
var compared = []string{"Range", "If-None-Match", "Accept", "Cache-Control", "Origin", "Content-Disposition",
	"Content-Type", "User-Agent"}

// maxText limits request bodies that are compared as text.
const maxText = 16 << 20

// check compares a request with its recorded exchange.
func (s *Server) check(e Exchange, r *http.Request) error {
	for _, h := range compared {
		want, got := e.Header.Get(h), r.Header.Get(h)
		if h == "Content-Type" {
			want, got = mediaType(want), mediaType(got)
		}
		if want != got && (want != "" || h != "User-Agent") {
			return fmt.Errorf("has header %s %q, recorded was %q", h, got, want)
		}
	}
	if e.Header.Get("Authorization") != "" {
		switch user, password, ok := r.BasicAuth(); {
		case !ok:
			return fmt.Errorf("has no login, recorded was %q", e.Header.Get("Authorization"))
		case s.login != nil && [2]string{user, password} != *s.login:
			return fmt.Errorf("logs in as %q with another password than the test's", user)
		}
	}
	if e.Answer.End == Early || e.Answer.End == Refused {
		return nil // the server did not read the whole body
	}
	return s.checkBody(e.Body, r)
}

func (s *Server) checkBody(want Body, r *http.Request) error {
	switch {
	case want.File != "":
		form, err := r.MultipartReader()
		if err != nil {
			return fmt.Errorf("has no multipart body (%w), recorded was one with the file %q", err, want.File)
		}
		file, err := form.NextPart()
		if err != nil {
			return fmt.Errorf("first part of its body: %w", err)
		}
		if err := s.checkSum(want, file); err != nil {
			return err
		}
		if _, err := form.NextPart(); err != io.EOF {
			return fmt.Errorf("sends more than one file (%v)", err)
		}
		return nil
	case want.SHA256 != "":
		return s.checkSum(want, r.Body)
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxText))
	if err != nil {
		return fmt.Errorf("read its body: %w", err)
	}
	kind := mediaType(r.Header.Get("Content-Type"))
	if canonical(want.Text, kind) != canonical(string(b), kind) {
		return fmt.Errorf("has the body\n\t%s\nrecorded was\n\t%s", b, want.Text)
	}
	return nil
}

func (s *Server) checkSum(want Body, r io.Reader) error {
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil {
		return fmt.Errorf("read its body: %w", err)
	}
	is, recorded := hex.EncodeToString(h.Sum(nil)), want.SHA256
	if other, ok := s.contents[recorded]; ok {
		recorded = Sum(other)
	}
	if n != want.Bytes || is != recorded {
		return fmt.Errorf("sends %d bytes, SHA-256 %s; recorded were %d bytes, %s", n, is, want.Bytes, recorded)
	}
	return nil
}

// canonical returns a body in a canonical form, because the fields of forms and JSON objects have
// no order.
func canonical(text, kind string) string {
	switch kind {
	case "application/x-www-form-urlencoded":
		if query, err := url.ParseQuery(text); err == nil {
			return query.Encode()
		}
	case "application/json":
		var v any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber() // keeps numbers exact
		if d.Decode(&v) == nil {
			sorted, _ := json.Marshal(v) // decoded JSON can be encoded
			return string(sorted)
		}
	}
	return text
}

func mediaType(s string) string {
	kind, _, _ := mime.ParseMediaType(s)
	return kind
}

// answer sends the recorded answer.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, e *step) {
	a := e.Answer
	switch {
	case a.Status == 0 && a.End == Stalled:
		stall(r)
		return
	case a.Status == 0:
		s.drop(w)
		return
	}
	whole := a.End == Whole || a.End == Early
	chunked := strings.EqualFold(a.Header.Get("Transfer-Encoding"), "chunked") || len(a.Trailer) > 0
	head(w, a)
	if chunked && whole {
		w.Header().Del("Content-Length")
	} else if whole && len(e.body) > 0 { // otherwise the announced length, not that of the part that arrived
		w.Header().Set("Content-Length", strconv.Itoa(len(e.body)))
	}
	w.WriteHeader(a.Status)
	if chunked || !whole {
		flush(w)
	}
	if len(e.body) > 0 {
		if _, err := w.Write(e.body); err != nil {
			return // the client left, or the recording contradicts itself, which the client sees
		}
	}
	for k, values := range a.Trailer {
		if !strings.Contains(a.Header.Get("Trailer"), k) {
			k = http.TrailerPrefix + k
		}
		w.Header()[k] = values
	}
	if whole {
		return
	}
	flush(w)
	if a.End == Stalled {
		stall(r)
	}
	panic(http.ErrAbortHandler)
}

// head copies the recorded headers.
func head(w http.ResponseWriter, a Answer) {
	w.Header()["Content-Type"] = nil // otherwise net/http guesses one
	for k, values := range a.Header {
		if k != "Date" && k != "Transfer-Encoding" {
			w.Header()[k] = values
		}
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// stall sends nothing until the client leaves or the test ends.
func stall(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // without reading, the server does not notice that the client has left
	<-r.Context().Done()
}

// drop resets the connection.
func (s *Server) drop(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.t.Errorf("replay: reset a connection: %v", err)
		return
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// Made returns the content of the Kubo recordings: the concatenation of SHA-256(label ‖ counter),
// cut to size. The counter has 8 bytes, is big-endian and starts at 0.
func Made(label string, size int64) []byte {
	out := make([]byte, 0, size+sha256.Size)
	in := make([]byte, len(label)+8)
	copy(in, label)
	for n := uint64(0); int64(len(out)) < size; n++ {
		binary.BigEndian.PutUint64(in[len(label):], n)
		sum := sha256.Sum256(in)
		out = append(out, sum[:]...)
	}
	return out[:size]
}

// Sum returns the SHA-256 of b in the form of recordings.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// contents holds the bytes of bodies that were recorded as hashes, by hash.
type contents map[string][]byte

// bytes returns the bytes of b. For an answer with header h, these can be a whole content, the
// beginning of one (where the body stopped), or the part that Content-Range names.
func (c contents) bytes(b Body, h http.Header) ([]byte, error) {
	if b.SHA256 == "" {
		return []byte(b.Text), nil
	}
	if whole, ok := c[b.SHA256]; ok {
		if int64(len(whole)) != b.Bytes {
			return nil, fmt.Errorf("replaces %d recorded bytes and has %d", b.Bytes, len(whole))
		}
		return whole, nil
	}
	var first int64
	_, _ = fmt.Sscanf(h.Get("Content-Range"), "bytes %d-", &first)
	for _, whole := range c {
		for _, from := range []int64{first, 0} {
			if to := from + b.Bytes; to <= int64(len(whole)) && Sum(whole[from:to]) == b.SHA256 {
				return whole[from:to], nil
			}
		}
	}
	return nil, fmt.Errorf("a body of %d bytes with SHA-256 %s was not kept and no content that the test gave has it",
		b.Bytes, b.SHA256)
}
