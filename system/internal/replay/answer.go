package replay

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

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
	trailers(w, a)
	if whole {
		return
	}
	flush(w)
	if a.End == Stalled {
		stall(r)
	}
	panic(http.ErrAbortHandler)
}

func trailers(w http.ResponseWriter, a Answer) {
	for k, values := range a.Trailer {
		if !strings.Contains(a.Header.Get("Trailer"), k) {
			k = http.TrailerPrefix + k
		}
		w.Header()[k] = values
	}
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
