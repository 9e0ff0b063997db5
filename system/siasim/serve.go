package siasim

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"time"
)

// down reports whether connections are refused.
func (s *Sim) down() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	return within(s.faults.Down, s.now)
}

// outer is what happens to every request, whatever it asks for.
func (s *Sim) outer(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.down() {
			panic(http.ErrAbortHandler) // a connection from before
		}
		half := s.latency(r.URL.Path) / 2
		if err := sleep(r.Context(), half); err != nil {
			return
		}
		s.mu.Lock()
		s.advance()
		html := within(s.faults.HTML, s.now)
		s.mu.Unlock()
		if html {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<!DOCTYPE html>\n<html><head><title>Maintenance</title></head><body><h1>We'll be back soon</h1></body></html>\n")
			return
		}
		answer := &held{ResponseWriter: w, wait: func() { _ = sleep(r.Context(), half) }}
		inner.ServeHTTP(answer, r)
		if s.down() {
			panic(http.ErrAbortHandler) // it went down while it answered
		}
		answer.release()
	})
}

// held is an answer that is sent after a wait: handlers make it while they hold
// the model's lock, and nobody must sleep with that.
type held struct {
	http.ResponseWriter
	wait   func()
	status int
	body   bytes.Buffer
	sent   bool
}

func (h *held) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

func (h *held) Write(p []byte) (int, error) {
	if h.sent {
		return h.ResponseWriter.Write(p)
	}
	return h.body.Write(p)
}

// release sends what there is; from then on the answer is written as it comes.
func (h *held) release() {
	if h.sent {
		return
	}
	h.sent = true
	h.wait()
	h.ResponseWriter.WriteHeader(cmp.Or(h.status, http.StatusOK))
	_, _ = h.ResponseWriter.Write(h.body.Bytes())
}

// latency is how long an answer takes.
func (s *Sim) latency(path string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	l, ok := s.conf.LatencyOf[path]
	if !ok {
		l = s.conf.Latency
	}
	seconds := s.expected(l).Seconds()
	if l.Jitter > 0 {
		seconds *= 1 + l.Jitter*(2*s.rand.Float64()-1)
	}
	return time.Duration(seconds * float64(time.Second))
}

// expected is a latency without its jitter.
func (s *Sim) expected(l Latency) time.Duration {
	absolute := int64(0)
	if l.PerByte > 0 {
		for _, f := range s.files {
			absolute += int64(f.placed) * s.conf.Sector
		}
		for _, f := range s.renterd.slabs {
			absolute += int64(f.placed) * s.conf.Sector
		}
	}
	seconds := l.PerByte*float64(absolute) + l.PerSecond*s.now.Seconds()
	return l.Base + time.Duration(len(s.files))*l.PerFile + time.Duration(seconds*float64(time.Second))
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answerJSON sends v as siad and renterd do: a line feed ends it.
func answerJSON(w http.ResponseWriter, contentType string, v any) {
	w.Header().Set("Content-Type", contentType)
	_ = json.NewEncoder(w).Encode(v)
}

// received is the content of a request.
type received struct {
	size     int64
	sum, md5 string
	kept     []byte // nil: too large
	err      error  // it did not come to an end
}

// receive reads a body; of at most so many bytes the content is kept.
func receive(r io.Reader, keep int64) (got received) {
	sha, sum := sha256.New(), md5.New()
	var kept keeper
	kept.left = keep
	got.size, got.err = io.Copy(io.MultiWriter(sha, sum, &kept), r)
	got.sum, got.md5 = hex.EncodeToString(sha.Sum(nil)), hex.EncodeToString(sum.Sum(nil))
	if !kept.over {
		got.kept = kept.bytes
		if got.kept == nil {
			got.kept = []byte{}
		}
	}
	return got
}

// keeper keeps what is written as long as it is not too much.
type keeper struct {
	bytes []byte
	left  int64
	over  bool
}

func (k *keeper) Write(p []byte) (int, error) {
	if k.left -= int64(len(p)); k.left < 0 {
		k.over, k.bytes = true, nil
	} else {
		k.bytes = append(k.bytes, p...)
	}
	return len(p), nil
}

// take enters received content into a file.
func (s *Sim) take(f *file, got received) {
	f.sum, f.md5, f.incomplete = got.sum, got.md5, got.err != nil
	if got.kept != nil && s.keep+int64(len(got.kept)) <= s.conf.KeepBytes {
		f.content = got.kept
		s.keep += int64(len(got.kept))
	}
}

// stored waits until a file is accepted. It reports whether it still is there.
func (s *Sim) stored(ctx context.Context, f *file) bool {
	for {
		s.mu.Lock()
		s.advance()
		there := s.files[f.path] == f
		ok := f.placed >= f.accepted()
		wait := s.conf.BlockTime // nothing moves: something may have changed by then
		for _, j := range s.jobs {
			if j.file == f {
				if at, comes := s.link.reaches(j.begin+float64(f.accepted())*float64(s.conf.Sector), s.now, s.faults.Stall); comes {
					wait = min(wait, max(at-s.now, time.Millisecond))
				}
			}
		}
		s.mu.Unlock()
		if ok || !there {
			return there
		}
		if sleep(ctx, wait) != nil {
			return false
		}
	}
}

// content is that of a file; false: it cannot be rebuilt.
func (s *Sim) content(f *file) (io.Reader, bool) {
	switch {
	case f.content != nil:
		return strings.NewReader(string(f.content)), true
	case s.conf.Content != nil:
		return &later{make: func() io.Reader { return io.LimitReader(s.conf.Content(f.path, f.size), f.size) }}, true
	}
	return nil, false
}

// later makes its reader when it is read, which is not under the model's lock.
type later struct {
	make func() io.Reader
	r    io.Reader
}

func (l *later) Read(p []byte) (int, error) {
	if l.r == nil {
		l.r = l.make()
	}
	return l.r.Read(p)
}

// pay for a download, out of the contracts with hosts that are alive, the first
// that can.
func (s *Sim) payDownload(bytes int64) bool {
	price := new(big.Int).Mul(s.conf.Prices.Download, big.NewInt(bytes))
	for _, c := range s.contract {
		if c.state == active && !c.host.dead && c.spend(c.download, price) {
			return true
		}
	}
	return false
}

// span is a part of a file.
func span(r io.Reader, off, length int64) (io.Reader, error) {
	if _, err := io.CopyN(io.Discard, r, off); err != nil {
		return nil, fmt.Errorf("siasim: skip to %d: %w", off, err)
	}
	return io.LimitReader(r, length), nil
}
