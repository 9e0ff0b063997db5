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
	shards   int64   // that share the link, with as many operations each
	bytes    atomic.Int64
	others   atomic.Int64 // bytes of the other shards, as of their last reports
	underway atomic.Int64 // operations
	ended    atomic.Int64 // operations, warm-ups left out
}

// carried is how many bytes the link has brought to all shards.
func (l *linkUse) carried() int64 { return l.bytes.Load() + l.others.Load() }

// starved reports whether an operation of length bytes (-1: unknown) that got
// nothing for ns nanoseconds, since the link had carried before bytes, was starved
// by the link: the others filled it, and a fair share of it in that time would not
// have been enough for the whole operation.
func (l *linkUse) starved(before, ns, length int64) bool {
	could := l.rate * float64(ns) / 1e9
	fair := could / float64(max(l.underway.Load(), 1)*l.shards)
	return could > 0 && float64(l.carried()-before) >= fullLink*could && (length < 0 || fair < float64(length))
}
