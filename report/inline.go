package report

import (
	"fmt"
	"maps"
	"slices"
)

// Inline are the sizes whose bytes never cross the link.
type Inline struct {
	Stays Num  `json:"stays"` // the largest of them, bytes
	Goes  Num  `json:"goes"`  // the smallest size that crosses; unknown: none that was measured does
	Whole bool `json:"whole"` // no size of the plan crosses: the operation is local
}

const (
	// noRound is the share of its round trip within which an operation that
	// ended waited for no answer.
	noRound = 0.5
	// leastRTT is the shortest round trip, in seconds, that shows whether one was
	// waited for.
	leastRTT = 0.004
	// idleBytes on the link are the noise of connections that stay open.
	idleBytes = 128
	// quietShare of an object's bytes on the link is not the object.
	quietShare = 0.5
	// absentShare of an object of tellingSize or more is the talk of daemons: the
	// object stayed, however long that took.
	absentShare, tellingSize = 0.1, 10_000
)

// locate finds what never crosses the link, of every operation.
func (r *Report) locate() {
	r.inlines = map[task]*Inline{}
	seen := map[task]bool{}
	for _, c := range r.cells() {
		if !c.sequential() || seen[c.task()] {
			continue
		}
		seen[c.task()] = true
		if in := r.inline(c.task()); in != nil {
			r.inlines[c.task()] = in
		}
	}
}

// moves reports whether an operation has to move an object's bytes between the
// client and a server.
func moves(operation string) bool { return operation != "stat" && operation != "delete" }

// inline finds the sizes of an operation whose bytes never cross the link. At
// the longest round trip, where waiting for one shows best, either it ended
// sooner than that allows while the link carried nothing to speak of, or the
// link carried so little of a large object that it cannot have crossed. Nil:
// there are none, or it cannot be told.
func (r *Report) inline(k task) *Inline {
	stays := map[float64]bool{} // by size; false: its bytes cross
	longest := map[float64]float64{}
	carried := map[float64]float64{} // by size: the most bytes on the link
	planned := 0.0                   // the largest size
	for _, c := range r.cells() {
		if !c.sequential() || c.task() != k {
			continue
		}
		planned = max(planned, c.size())
		m, ok := c.Metrics["duration_p50"]
		if !ok {
			continue
		}
		rtt, size := r.roundTrip(c), c.size()
		w, measured := c.Metrics["wire_bytes"]
		if measured && moves(k.operation) && size >= tellingSize {
			carried[size] = max(carried[size], float64(w.Median))
		}
		if rtt < max(leastRTT, longest[size]) {
			continue
		}
		crossed := measured && moves(k.operation) && float64(w.Median) > max(idleBytes, quietShare*size)
		longest[size], stays[size] = rtt, float64(m.Median) < noRound*rtt && !crossed
	}
	absent := 0.0 // the largest size that shows it by its bytes alone; smaller ones stay with it
	for size, bytes := range carried {
		if bytes < absentShare*size {
			absent = max(absent, size)
			stays[size] = true
		}
	}
	in := &Inline{Stays: unknown, Goes: unknown}
	for _, s := range slices.Sorted(maps.Keys(stays)) {
		if !stays[s] && s > absent {
			in.Goes = Num(s)
			break
		}
		in.Stays = Num(s)
	}
	if !in.Stays.Known() {
		return nil
	}
	in.Whole = float64(in.Stays) >= planned
	return in
}

// holds reports whether a size's bytes stay where they are.
func (in *Inline) holds(size float64) bool { return in != nil && Num(size) <= in.Stays }

// whole reports whether no size crosses.
func (in *Inline) whole() bool { return in != nil && in.Whole }

func (in *Inline) words(operation string) string {
	largest := sizeWords(float64(in.Stays))
	switch {
	case !in.Goes.Known() && !in.Whole:
		return "up to " + largest + " nothing crosses the link; larger sizes have no valid trials"
	case in.whole():
		return "nothing crossed the link, up to the largest of " + largest + ": what is timed is local"
	case writes(operation):
		return fmt.Sprintf("objects up to %s never leave the client (measured: %s stays, %s goes)", largest, largest, sizeWords(float64(in.Goes)))
	}
	return fmt.Sprintf("up to %s nothing crosses the link (measured: %s does not, %s does)", largest, largest, sizeWords(float64(in.Goes)))
}

// local reports whether what a cell times stays on the client's side of the link.
func (r *Report) local(c *Cell) bool {
	if c.overhead() == nil {
		return false
	}
	k := c.task()
	if k.operation == "fill" {
		k.operation = "put" // what it times first
	}
	return r.inlines[k].holds(c.size())
}

// alike reports whether a ratio of two cells compares like with like: the time of
// what crosses the link says nothing of one that does not cross it.
func (r *Report) alike(key string, a, b *Cell) bool {
	return key == "system_rss_peak" || r.local(a) == r.local(b)
}

// sizeWords prints a size that was asked for, to the byte where it is small.
func sizeWords(v float64) string {
	if v < 1e4 {
		return count(int64(v)) + " B"
	}
	return exact(v, "B")
}
