package siasim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

// file is an object that was put. Its sectors go through the uplink in order: first those
// that rebuild every chunk, then, chunk by chunk, the others.
type file struct {
	path       string
	serial     int
	size       int64
	sum        string // SHA-256 of the content, lower-case hex
	content    []byte // nil: it was too large to be kept
	incomplete bool   // its content did not come to an end
	data, full int    // pieces of a chunk that rebuild it; that were asked for
	pieces     int    // of a chunk that there will be: full, or more
	chunks     int
	accept     int // sectors on hosts before the put is answered
	placed     int // sectors on hosts, counted and paid
	on         map[*host]int
	lost       int // sectors on hosts that are gone
}

// receive makes a file of a body. It is not in the renter yet.
func (s *Sim) receive(path string, r io.Reader) *file {
	f := &file{path: path, data: s.conf.Data, full: s.conf.Data + s.conf.Parity, on: map[*host]int{}}
	f.pieces = f.full
	hash := sha256.New()
	content, err := io.ReadAll(io.TeeReader(io.LimitReader(r, keepEach), hash))
	f.size = int64(len(content))
	if f.size < keepEach {
		f.content = content
	} else if err == nil {
		content = nil
		var more int64
		more, err = io.Copy(hash, r)
		f.size += more
	}
	f.sum, f.incomplete = hex.EncodeToString(hash.Sum(nil)), err != nil
	chunk := int64(f.data) * s.conf.Sector
	f.chunks = int((f.size + chunk - 1) / chunk)
	return f
}

// add enters a file, and sends it through the uplink after all others if it is whole.
func (s *Sim) add(f *file) {
	s.serial++
	f.serial = s.serial
	s.files[f.path] = f
	if f.incomplete {
		return
	}
	begin := max(s.carried(s.now), s.tail)
	s.tail = begin + float64(f.chunks*f.pieces)*float64(s.conf.Sector)
	s.jobs = append(s.jobs, &job{f, begin})
}

// remove forgets a file; what is not uploaded yet is not uploaded any more.
func (s *Sim) remove(f *file) {
	delete(s.files, f.path)
	s.gone += int64(f.placed)
	for i, j := range s.jobs {
		if j.file == f {
			s.jobs = append(s.jobs[:i:i], s.jobs[i+1:]...)
			return
		}
	}
}

// job is a file on its way through the uplink.
type job struct {
	file  *file
	begin float64 // what the uplink will have carried before its first byte
}

// carried is what the uplink could have carried until t, in bytes.
func (s *Sim) carried(t time.Duration) float64 {
	moving := t
	for _, windows := range [][]Window{s.conf.Faults.Stall, s.conf.Faults.Full} {
		for _, w := range windows {
			moving -= max(w.until(t)-w.From, 0)
		}
	}
	return moving.Seconds() * s.conf.Rate
}

// epsilon makes up for rounding in sums of bytes, in sectors.
const epsilon = 1e-6

// upload stores what has gone through the uplink until a moment.
func (s *Sim) upload(at time.Duration) {
	carried, left := s.carried(at), s.jobs[:0]
	for _, j := range s.jobs {
		through := min(int((carried-j.begin)/float64(s.conf.Sector)+epsilon), j.file.chunks*j.file.pieces)
		for j.file.placed < through && s.store(j.file) {
		}
		if j.file.placed < j.file.chunks*j.file.pieces {
			left = append(left, j)
		}
	}
	clear(s.jobs[len(left):])
	s.jobs = left
}

// accepted waits until enough of a file is on hosts. It reports whether the file
// still is there.
func (s *Sim) accepted(ctx context.Context, f *file) bool {
	for {
		unlock := s.lock()
		there, done, wait := s.files[f.path] == f, f.placed >= f.accept, time.Millisecond
		for _, j := range s.jobs {
			if j.file == f {
				bytes := j.begin + float64(f.accept)*float64(s.conf.Sector) - s.carried(s.now)
				wait = max(time.Duration(bytes/s.conf.Rate*float64(time.Second)), wait)
			}
		}
		for _, fault := range [][]Window{s.conf.Faults.Stall, s.conf.Faults.Full} {
			if on, left := within(fault, s.now); on {
				wait = max(left, blockTime)
			}
		}
		down := s.has(s.conf.Faults.Down)
		unlock()
		if down && done {
			panic(http.ErrAbortHandler) // there is no way for the answer
		}
		if done || !there {
			return there
		}
		if sleep(ctx, min(wait, blockTime)) != nil {
			return false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// overshoot has a file get more pieces than asked for.
func (s *Sim) overshoot(f *file) {
	if o := s.conf.Faults.Overshoot; o != nil {
		nominal := float64(f.full) / float64(f.data)
		f.pieces = max(f.full, int(math.Round(o.draw(nominal, s.rand.Float64())*float64(f.data))))
	}
}

// redundancy is siad's: that of the chunk that is worst off, without what is lost.
func (f *file) redundancy() float64 {
	switch {
	case f.incomplete:
		return 0
	case f.chunks == 0:
		return float64(f.full) / float64(f.data)
	}
	worst := max(0, f.placed-(f.chunks-1)*f.data)
	if first := f.chunks * f.data; f.placed >= first {
		worst = f.data + max(0, f.placed-first-(f.chunks-1)*(f.pieces-f.data))
	}
	return max(0, float64(worst)-float64(f.lost)/float64(f.chunks)) / float64(f.data)
}

// whole reports whether a file has ever had its full redundancy.
func (f *file) whole() bool { return !f.incomplete && f.placed >= f.chunks*f.full }

// send answers with a part of a file's content, for which a host is paid.
func (s *Sim) send(w http.ResponseWriter, f *file, off, length int64) bool {
	unlock := s.lock()
	paid := s.payDownload(length)
	unlock()
	var content io.Reader = bytes.NewReader(f.content)
	if f.content == nil {
		content = s.conf.Content(f.path, f.size)
	}
	if _, err := io.CopyN(io.Discard, content, off); err != nil || !paid {
		return false
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	w.WriteHeader(http.StatusOK)
	_, _ = io.CopyN(w, content, length)
	return true
}
