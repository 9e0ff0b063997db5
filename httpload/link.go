package httpload

import "sync/atomic"

// fullLink is the share of the link's rate above which it counts as full. The link carries
// more than body bytes: with hundreds of connections, much is dropped and retransmitted.
const fullLink = 0.5

// linkUse is the use of a link by all operations of a trial. It is safe for concurrent
// use.
type linkUse struct {
	rate     float64 // body bytes per second; 0: unknown
	shards   int64   // number of shards with equal load on the link
	bytes    atomic.Int64
	others   atomic.Int64 // bytes of the other shards, as of their last reports
	underway atomic.Int64 // operations
	ended    atomic.Int64 // operations, without warm-ups
}

// carried returns how many bytes all shards have received over the link.
func (l *linkUse) carried() int64 { return l.bytes.Load() + l.others.Load() }

// starved reports whether an operation of length bytes (-1: unknown) that received nothing
// for ns nanoseconds, since the link had carried before bytes, was starved by the link: the
// others filled the link, and a fair share of it in that time would not have been enough
// for the whole operation.
func (l *linkUse) starved(before, ns, length int64) bool {
	could := l.rate * float64(ns) / 1e9
	fair := could / float64(max(l.underway.Load(), 1)*l.shards)
	return could > 0 && float64(l.carried()-before) >= fullLink*could && (length < 0 || fair < float64(length))
}
