package link

// event is a packet in flight and the time of its next step.
type event struct {
	at      int64
	seq     uint64
	p       packet
	dst     int32
	down    bool  // it has passed the downlink queue
	refused bool  // by the kernel
	late    int64 // how late it arrived from another machine
}

// eventHeap is a binary heap ordered by time, then by order of insertion. Unlike
// container/heap it does not allocate at every step.
type eventHeap struct {
	e   []event
	seq uint64
}

// before reports whether a is due before b.
func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (h *eventHeap) push(ev event) {
	h.seq++
	ev.seq = h.seq
	h.e = append(h.e, ev)
	i := len(h.e) - 1
	for up := (i - 1) / 2; i > 0 && ev.before(&h.e[up]); up = (i - 1) / 2 {
		h.e[i] = h.e[up]
		i = up
	}
	h.e[i] = ev
}

func (h *eventHeap) pop() event {
	top := h.e[0]
	n := len(h.e) - 1
	last := h.e[n]
	h.e = h.e[:n]
	i := 0
	for l := 1; l < n; l = 2*i + 1 {
		if r := l + 1; r < n && h.e[r].before(&h.e[l]) {
			l = r
		}
		if last.before(&h.e[l]) {
			break
		}
		h.e[i] = h.e[l]
		i = l
	}
	if n > 0 {
		h.e[i] = last
	}
	return top
}
