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
	if a.Status == 0 || a.End == NoLastRow {
		s.broken(w, r, a, body)
		return
	}
	whole := a.End == Whole || a.End == Early
	chunked := strings.EqualFold(a.Header.Get("Transfer-Encoding"), "chunked") || len(a.Trailer) > 0
	hasBody := r.Method != http.MethodHead && bodyAllowed(a.Status)
	s.head(w, a)
	if whole && hasBody && !chunked { // else what was promised, not what came
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	} else if chunked && whole {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(a.Status)
	if chunked || !whole {
		flush(w)
	}
	if hasBody {
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

// broken is an answer that no server gives on purpose.
func (s *Server) broken(w http.ResponseWriter, r *http.Request, a Answer, body []byte) {
	switch {
	case a.End == NoLastRow:
		s.noLastRow(w, a, body)
	case a.End == Stalled:
		s.stall(r)
	default:
		s.drop(w)
	}
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
func (s *Server) head(w http.ResponseWriter, a Answer) {
	w.Header()["Content-Type"] = nil // or one is guessed
	for k, values := range a.Header {
		if k != "Date" && k != "Transfer-Encoding" {
			w.Header()[k] = values
		}
	}
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
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

// noLastRow writes a chunked answer by hand and leaves out its very end.
func (s *Server) noLastRow(w http.ResponseWriter, a Answer, body []byte) {
	c, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.fail(fmt.Errorf("end an answer early: %w", err))
		return
	}
	defer c.Close()
	h := a.Header.Clone()
	h.Del("Content-Length")
	h.Set("Transfer-Encoding", "chunked")
	h.Set("Connection", "close")
	fmt.Fprintf(buf, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	_ = h.Write(buf) // an error means that the client left
	buf.WriteString("\r\n")
	if len(body) > 0 {
		fmt.Fprintf(buf, "%x\r\n%s\r\n", len(body), body)
	}
	buf.WriteString("0\r\n")
	buf.Flush()
}
