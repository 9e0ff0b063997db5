package fanout

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// contentPath is where other nodes get what this one published.
const contentPath = "/content/"

// swath is the step in which what is sent is counted, in bytes.
const swath = 1 << 20

// contentServer serves what this node published, and nothing that it fetched.
func (n *node) contentServer() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+contentPath+"{ref}", member.Answer(func(w http.ResponseWriter, r *http.Request) error {
		ref, b := system.Ref(r.PathValue("ref")), n.backend
		b.mu.Lock()
		ours := b.ours[ref]
		b.mu.Unlock()
		if !ours {
			return fmt.Errorf("%s was not published here: %w", ref, system.ErrNotFound)
		}
		b.peers.Add(1)
		defer b.peers.Add(-1)
		return member.ServeFile(&sender{w, &b.sent}, r, b.path(ref))
	}))
	return mux
}

// sender counts a body as it is sent. Files still go by sendfile: what reads from them is
// handed on in parts.
type sender struct {
	http.ResponseWriter
	sent *atomic.Int64
}

// ReadFrom implements io.ReaderFrom, which ServeContent's copy ends in.
func (s *sender) ReadFrom(r io.Reader) (done int64, err error) {
	whole, ok := r.(*io.LimitedReader)
	if !ok {
		return 0, fmt.Errorf("fanout: a body is read from %T", r)
	}
	for whole.N > 0 {
		part := min(whole.N, swath)
		n, err := io.CopyN(s.ResponseWriter, whole.R, part)
		done += n
		whole.N -= n
		s.sent.Add(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
