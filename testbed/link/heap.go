package link

// event is a packet on its way and the moment of its next step.
type event struct {
	at   int64
	seq  uint64
	p    packet
	dst  int32
	down bool  // it has passed the downlink queue
	late int64 // how much later than due it came from another machine
}

// eventHeap is a binary heap ordered by time, then by order of entry. It is not
// container/heap because that would allocate at every step.
type eventHeap struct {
	e   []event
	seq uint64
}

func (h *eventHeap) less(i, j int) bool {
	if h.e[i].at != h.e[j].at {
		return h.e[i].at < h.e[j].at
	}
	return h.e[i].seq < h.e[j].seq
}

func (h *eventHeap) push(ev event) {
	h.seq++
	ev.seq = h.seq
	h.e = append(h.e, ev)
	for i := len(h.e) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			break
		}
		h.e[i], h.e[up] = h.e[up], h.e[i]
		i = up
	}
}

func (h *eventHeap) pop() event {
	top := h.e[0]
	n := len(h.e) - 1
	h.e[0] = h.e[n]
	h.e[n] = event{}
	h.e = h.e[:n]
	for i := 0; ; {
		l := 2*i + 1
		if l >= n {
			break
		}
		if r := l + 1; r < n && h.less(r, l) {
			l = r
		}
		if !h.less(l, i) {
			break
		}
		h.e[i], h.e[l] = h.e[l], h.e[i]
		i = l
	}
	return top
}
