package report

import (
	"math"

	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/system"
)

// moreThanAsked: redundancy above what was asked for, or never as high.
func moreThanAsked(r *Report) []Finding {
	var all []findings.Redundant
	for i := range r.Loads {
		l := &r.Loads[i]
		w := l.watch
		x := findings.Redundant{Name: l.name(), Copies: math.NaN(), At: w.end}
		if l.coding.known() {
			x.Asked = float64(l.coding.servers) / float64(l.coding.needed)
		}
		if e := l.Efficiency; e != nil && e.Copies.Known() {
			x.Asked, x.Copies, x.PerFile, x.Metadata = float64(e.Servers/e.Needed), float64(e.Copies), float64(e.PerFile), l.small()
		}
		x.Mean, x.Most = w.values[system.ReadRedundancyMean], w.values[system.ReadRedundancyMax]
		if n := len(l.shelf.accepted); n > 0 && l.info.settle() > 0 && len(w.end) > 0 {
			x.Waited = w.end[len(w.end)-1]-l.shelf.lastAccepted() > l.info.settle()
		}
		all = append(all, x)
	}
	return findings.Redundancy(all)
}

// What a server keeps beside a piece (headers, hash trees, a block of its disk) is
// seen where objects are small: at most so many bytes for each piece, of objects
// of at most so many.
const (
	pieceMetadata = 4 << 10
	smallObject   = 64 << 10
)

// small reports whether metadata of small objects explain what was stored beyond
// their redundancy.
func (l *LoadTest) small() bool {
	e := l.Efficiency
	size := float64(l.Bytes) / float64(l.Files)
	beside := float64(e.PerFile) - size*float64(e.Servers/e.Needed)
	return !e.Sector.Known() && size <= smallObject && beside <= pieceMetadata*float64(e.Servers)
}
