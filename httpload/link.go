package httpload

import "sync/atomic"

// fullLink is the share of the link's rate from which on it counts as full. Body
// bytes are less than what the link carries: a link that hundreds of connections
// share drops and repeats much.
const fullLink = 0.5

// linkUse is what all operations of a trial get over their link together. Its
// methods may be called from several goroutines.
type linkUse struct {
	rate     float64 // body bytes per second; 0: unknown
	bytes    atomic.Int64
	underway atomic.Int64
}

// starved reports whether an operation of length bytes (-1: unknown) that got
// nothing for ns nanoseconds, since the link had carried before bytes, was starved
// by the link: the others filled it, and a fair share of it in that time would not
// have been enough for the whole operation.
func (l *linkUse) starved(before, ns, length int64) bool {
	could := l.rate * float64(ns) / 1e9
	fair := could / float64(max(l.underway.Load(), 1))
	return could > 0 && float64(l.bytes.Load()-before) >= fullLink*could && (length < 0 || fair < float64(length))
}
