package fanout

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// contentPath is the URL path at which other nodes get what this node published.
const contentPath = "/content/"

// swath is the number of bytes after which the sent bytes are counted.
const swath = 1 << 20

// contentServer serves what this node published, but nothing that it fetched.
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

// sender counts the bytes of a body while sending it. It passes the reader on in parts, so files
// are still sent with sendfile.
type sender struct {
	http.ResponseWriter
	sent *atomic.Int64
}

// ReadFrom implements io.ReaderFrom, which ServeContent's copy calls.
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
