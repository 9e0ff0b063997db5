package fanout

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// contentPath is where other nodes get what this one published.
const contentPath = "/content/"

// slice is what is sent at a time under a limit, in bytes; without one it is
// counted in steps of swath.
const (
	slice = 64 << 10
	swath = 1 << 20
)

// contentServer serves what this node published, and nothing that it fetched.
func (p *peer) contentServer() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+contentPath+"{ref}", member.Answer(func(w http.ResponseWriter, r *http.Request) error {
		c, err := p.of(r.PathValue("ref"))
		if err != nil {
			return err
		}
		if !c.task.Published {
			return fmt.Errorf("%s was not published here: %w", c.ref, system.ErrNotFound)
		}
		c.peers.Add(1)
		defer c.peers.Add(-1)
		return member.ServeFile(&sender{ResponseWriter: w, r: r, limit: p.limit, sent: &c.sent}, r, c.path())
	}))
	return mux
}

// sender counts a body as it is sent and holds it to the limit. Files still go
// by sendfile: what reads from them is handed on in parts.
type sender struct {
	http.ResponseWriter
	r     *http.Request
	limit *rate.Limiter
	sent  *atomic.Int64
}

// ReadFrom implements io.ReaderFrom, which ServeContent's copy ends in.
func (s *sender) ReadFrom(r io.Reader) (int64, error) {
	whole, ok := r.(*io.LimitedReader)
	if !ok {
		return 0, fmt.Errorf("fanout: a body is read from %T", r)
	}
	var done int64
	for whole.N > 0 {
		part := &io.LimitedReader{R: whole.R, N: min(whole.N, swath)}
		if s.limit != nil {
			part.N = min(part.N, slice)
			if err := s.limit.WaitN(s.r.Context(), int(part.N)); err != nil {
				return done, err
			}
		}
		n, err := io.Copy(s.ResponseWriter, part)
		done += n
		whole.N -= n
		s.sent.Add(n)
		if err != nil || part.N > 0 {
			return done, err
		}
	}
	return done, nil
}
