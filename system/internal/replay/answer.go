package replay

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// answer sends what was recorded.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, e Exchange) {
	a := e.Answer
	body, err := s.contents.bytes(a.Body, a.Header)
	if err != nil {
		s.fail(fmt.Errorf("step %q: %w", e.Step, err))
		return
	}
	switch {
	case a.Status == 0 && a.End == Stalled:
		s.stall(r)
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
	} else if whole && len(body) > 0 { // else what was promised, not what came
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(a.Status)
	if chunked || !whole {
		flush(w)
	}
	if len(body) > 0 {
		if _, err := w.Write(body); err != nil {
			return // the client left, or the recording contradicts itself, which the client sees
		}
	}
	trailers(w, a)
	if whole {
		return
	}
	flush(w)
	if a.End == Stalled {
		s.stall(r)
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

// head copies the headers that were recorded.
func head(w http.ResponseWriter, a Answer) {
	w.Header()["Content-Type"] = nil // or one is guessed
	for k, values := range a.Header {
		if k != "Date" && k != "Transfer-Encoding" {
			w.Header()[k] = values
		}
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// stall sends nothing until the client leaves or the test ends.
func (s *Server) stall(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else it is not noticed that the client left
	select {
	case <-r.Context().Done():
	case <-s.closed:
	}
}

// drop resets the connection.
func (s *Server) drop(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.fail(fmt.Errorf("reset a connection: %w", err))
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}
