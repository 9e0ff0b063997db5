package replay

import (
	"bufio"
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
	case a.End == NoLastRow:
		s.noLastRow(w, a, body)
		return
	}
	whole := a.End == Whole || a.End == Early
	chunked := strings.EqualFold(a.Header.Get("Transfer-Encoding"), "chunked") || len(a.Trailer) > 0
	for k, values := range a.Header {
		switch k {
		case "Date", "Content-Length", "Transfer-Encoding":
		default:
			w.Header()[k] = values
		}
	}
	if a.Header.Get("Content-Type") == "" {
		w.Header()["Content-Type"] = nil // or one is guessed
	}
	length := a.Header.Get("Content-Length")
	switch {
	case r.Method == http.MethodHead, !whole:
		// What was promised, not what came.
		if length != "" {
			w.Header().Set("Content-Length", length)
		}
	case !chunked && bodyAllowed(a.Status):
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(a.Status)
	if chunked || !whole {
		flush(w)
	}
	if r.Method != http.MethodHead && bodyAllowed(a.Status) {
		if _, err := w.Write(body); err != nil {
			return // the client left, or the recording contradicts itself, which the client sees
		}
	}
	for k, values := range a.Trailer {
		w.Header()[http.TrailerPrefix+k] = values
		if strings.Contains(a.Header.Get("Trailer"), k) {
			w.Header()[k] = values
			delete(w.Header(), http.TrailerPrefix+k)
		}
	}
	switch a.End {
	case Stalled:
		flush(w)
		s.stall(r)
		panic(http.ErrAbortHandler)
	case Cut:
		flush(w)
		panic(http.ErrAbortHandler)
	}
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// stall sends nothing until the client leaves or the test ends.
func (s *Server) stall(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else we are not told that the client left
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
	writeHead(buf.Writer, a)
	if len(body) > 0 {
		fmt.Fprintf(buf, "%x\r\n", len(body))
		buf.Write(body)
		buf.WriteString("\r\n")
	}
	buf.WriteString("0\r\n")
	buf.Flush() // an error means that the client left
}

func writeHead(w *bufio.Writer, a Answer) {
	fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	h := a.Header.Clone()
	for _, k := range []string{"Content-Length", "Transfer-Encoding", "Connection"} {
		h.Del(k)
	}
	h.Set("Transfer-Encoding", "chunked")
	h.Set("Connection", "close")
	h.Write(w)
	w.WriteString("\r\n")
}
