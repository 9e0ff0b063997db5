package record

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// WindowSeconds is the width of a window.
const WindowSeconds = 1

const windowNs = int64(WindowSeconds * 1e9)

// Window is what happened in one second of a trial; how long it took is in
// [Reader.WindowHistogram].
type Window struct {
	Second   int64              // begins Second × WindowSeconds after the epoch
	Outcomes [numOutcomes]int64 // operations that ended in it, by Outcome
	// Bytes is the body bytes that came in it. An operation's bytes are spread
	// evenly from its first byte to its last, so that a long transfer does not
	// show as a burst at its end; the sum over all windows is exact.
	Bytes int64
}

// Ops is the number of operations that ended in the window.
func (w Window) Ops() (n int64) {
	for _, k := range w.Outcomes {
		n += k
	}
	return n
}

const (
	// maxOpenHistograms bounds the memory of windows not yet written: two
	// histograms of 270 kB each.
	maxOpenHistograms = 16
	// maxOpenWindows bounds those with counts only.
	maxOpenWindows = 1 << 14
	// maxSpread is how many windows the bytes of one operation are spread
	// over; those of a longer one all count in its last.
	maxSpread = 24 * 3600
)

// windower gathers what has to be added to the windows of a trial. It keeps
// only what was not written yet.
type windower struct {
	open       map[int64]*openWindow
	last       *openWindow // the one used last: nearly always the next one too
	histograms int
	free       []*histogram
}

type openWindow struct {
	second         int64
	outcomes       [numOutcomes]int64
	bytes          int64
	ttfb, duration *histogram
}

func (w *windower) at(second int64) *openWindow {
	if w.last != nil && w.last.second == second {
		return w.last
	}
	o := w.open[second]
	if o == nil {
		if w.open == nil {
			w.open = make(map[int64]*openWindow)
		}
		o = &openWindow{second: second}
		w.open[second] = o
	}
	return o
}

// full says that flush has to be called before more is added.
func (w *windower) full() bool {
	return w.histograms > 2*maxOpenHistograms || len(w.open) > maxOpenWindows
}

func (w *windower) add(op *Op) {
	if op.Kind == OpWarmup {
		return
	}
	o := w.at(floorDiv(op.LastByte, windowNs))
	w.last = o
	o.outcomes[op.Outcome]++
	if op.Bytes != 0 {
		w.spread(op, o)
	}
	if op.FirstByte != 0 && (op.Outcome == OK || !op.Outcome.Finished()) {
		w.record(&o.ttfb, op.FirstByte-op.Intended)
	}
	if op.Outcome == OK {
		w.record(&o.duration, op.LastByte-op.Intended)
	}
}

func (w *windower) record(h **histogram, ns int64) {
	if *h == nil {
		if n := len(w.free); n > 0 {
			*h = w.free[n-1]
			w.free = w.free[:n-1]
		} else {
			*h = newHistogram()
		}
		w.histograms++
	}
	(*h).record(ns)
}

// spread adds the operation's bytes to the windows from its first byte (its
// start, when it has none) to its last.
func (w *windower) spread(op *Op, end *openWindow) {
	from := op.FirstByte
	if from == 0 {
		from = op.Start
	}
	first := floorDiv(from, windowNs)
	span := op.LastByte - from
	if first >= end.second || end.second-first > maxSpread {
		end.bytes += op.Bytes
		return
	}
	var given int64
	for second := first; second < end.second; second++ {
		share := float64((second+1)*windowNs-from) / float64(span)
		upTo := min(int64(math.Round(share*float64(op.Bytes))), op.Bytes)
		w.at(second).bytes += upTo - given
		given = upTo
	}
	end.bytes += op.Bytes - given
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// flushWindows adds what the windower holds to the table. Operations rarely
// end in a window written before; then its histograms are merged.
func (r *Run) flushWindows(trial int64, w *windower) error {
	all := make([]*openWindow, 0, len(w.open))
	for _, o := range w.open {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *openWindow) int { return cmp.Compare(a.second, b.second) })
	for _, o := range all {
		if err := r.flushWindow(trial, o); err != nil {
			return fmt.Errorf("window %d of trial %d: %w", o.second, trial, err)
		}
		for _, h := range []*histogram{o.ttfb, o.duration} {
			if h != nil {
				h.reset()
				w.free = append(w.free, h)
			}
		}
	}
	clear(w.open)
	w.last = nil
	w.histograms = 0
	return nil
}

func (r *Run) flushWindow(trial int64, o *openWindow) error {
	var ttfb, duration storedHistogram
	if o.ttfb != nil || o.duration != nil {
		get, err := r.prepare(`SELECT ttfb_overflow, ttfb_hdr, duration_overflow, duration_hdr FROM windows WHERE trial = ? AND second = ?`)
		if err != nil {
			return err
		}
		err = get.QueryRowContext(context.Background(), trial, o.second).Scan(&ttfb.over, &ttfb.hdr, &duration.over, &duration.hdr)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	if err := ttfb.add(o.ttfb); err != nil {
		return err
	}
	if err := duration.add(o.duration); err != nil {
		return err
	}
	n := o.outcomes
	return r.exec(`INSERT INTO windows (trial, second,
			ok, refused, error, truncated, wrong_bytes, stalled, deadline, in_flight, cancelled,
			bytes, ttfb_overflow, ttfb_hdr, duration_overflow, duration_hdr, starved)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (trial, second) DO UPDATE SET
			ok = ok + excluded.ok, refused = refused + excluded.refused, error = error + excluded.error,
			truncated = truncated + excluded.truncated, wrong_bytes = wrong_bytes + excluded.wrong_bytes,
			stalled = stalled + excluded.stalled, deadline = deadline + excluded.deadline,
			in_flight = in_flight + excluded.in_flight, cancelled = cancelled + excluded.cancelled,
			starved = starved + excluded.starved,
			bytes = bytes + excluded.bytes,
			ttfb_overflow = coalesce(nullif(excluded.ttfb_overflow, 0), ttfb_overflow),
			ttfb_hdr = coalesce(excluded.ttfb_hdr, ttfb_hdr),
			duration_overflow = coalesce(nullif(excluded.duration_overflow, 0), duration_overflow),
			duration_hdr = coalesce(excluded.duration_hdr, duration_hdr)`,
		trial, o.second,
		n[OK], n[Refused], n[Error], n[Truncated], n[WrongBytes], n[Stalled], n[Deadline], n[InFlight], n[Cancelled],
		o.bytes, ttfb.over, ttfb.hdr, duration.over, duration.hdr, n[Starved])
}

// storedHistogram is a histogram as columns hold it: NULL when there is none.
type storedHistogram struct {
	over int64
	hdr  sql.NullString // HdrHistogram V2, compressed, base64
}

func (s storedHistogram) decode() (*Histogram, error) {
	if !s.hdr.Valid {
		return nil, nil
	}
	p, err := hdrhistogram.DecodePacked([]byte(s.hdr.String))
	if err != nil {
		return nil, fmt.Errorf("histogram: %w: %w", ErrCorrupt, err)
	}
	return &Histogram{p: p, over: s.over}, nil
}

func (s *storedHistogram) encode(h *Histogram) error {
	b, err := h.p.EncodeV2()
	if err != nil {
		return err
	}
	s.over, s.hdr = h.over, sql.NullString{String: string(b), Valid: true}
	return nil
}

// add merges the values of h, which may be nil.
func (s *storedHistogram) add(h *histogram) error {
	if h == nil {
		return nil
	}
	sum, err := h.pack()
	if err != nil {
		return err
	}
	before, err := s.decode()
	if err != nil {
		return err
	}
	if err := sum.Merge(before); err != nil {
		return err
	}
	return s.encode(sum)
}
