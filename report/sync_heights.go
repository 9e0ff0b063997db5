package report

import (
	"github.com/plimsoll-project/plimsoll/record"
)

// HeightAt is how fast a chain grew around a height: medians over the trials.
type HeightAt struct {
	Height int64 `json:"height"` // middle of the stretch
	Blocks Num   `json:"blocks"` // a second
	Wire   Num   `json:"wire"`   // bytes a second on the node's link; null: not told
	Trials int   `json:"trials"`
}

// stretches is into how many parts of equal height a chain is divided, where it
// has that many marks.
const stretches = 20

// rates is how fast the chain of the cell grew along its height. A mark is the end
// of the poll that told it; before the first block there is no rate.
func (s *Synced) rates() []HeightAt {
	height := int64(s.cell.plan.Sync.Blocks)
	if height < 2 {
		return nil
	}
	// Blocks that come in batches are told in as many steps: finer parts would show
	// the steps of the interpolation.
	n := int64(min(stretches, height))
	for i := range s.trials {
		n = min(n, max(2, steps(s.trials[i].marks)-1))
	}
	blocks, wire := make([][]float64, n), make([][]float64, n)
	for i := range s.trials {
		t := &s.trials[i]
		at, received := crossings(t.marks, height, n)
		for k := int64(1); k <= n; k++ {
			d := at[k] - at[k-1]
			if at[k] < 0 || at[k-1] < 0 || d <= 0 {
				continue
			}
			blocks[k-1] = append(blocks[k-1], float64(height)/float64(n)/d)
			if received[k] >= 0 && received[k-1] >= 0 && received[k] >= received[k-1] {
				wire[k-1] = append(wire[k-1], (received[k]-received[k-1])/d)
			}
		}
	}
	var out []HeightAt
	for k := range n {
		if len(blocks[k]) == 0 {
			continue
		}
		h := HeightAt{Height: (2*k + 1) * height / (2 * n), Blocks: Num(middle(blocks[k])), Wire: unknown, Trials: len(blocks[k])}
		if len(wire[k]) > 0 {
			h.Wire = Num(middle(wire[k]))
		}
		out = append(out, h)
	}
	return out
}

// steps counts the heights that marks told of.
func steps(marks []record.Mark) int64 {
	n, last := int64(0), int64(0)
	for i := range marks {
		if marks[i].Verified > last {
			n, last = n+1, marks[i].Verified
		}
	}
	return n
}

// crossings is when the chain came to each n-th of its height, and what the link
// had carried then, both interpolated between the marks around it; −1: it did not,
// or that is not told. The stretch before the first mark with a block is not known:
// waits for the first block would make its rate.
func crossings(marks []record.Mark, height, n int64) (at, received []float64) {
	at, received = make([]float64, n+1), make([]float64, n+1)
	for k := range at {
		at[k], received[k] = -1, -1
	}
	var last *record.Mark
	k := int64(0)
	for i := range marks {
		m := &marks[i]
		if m.Verified < 1 {
			continue
		}
		if last == nil {
			// What is there at the first mark came in a time that nobody saw.
			for k <= n && float64(k)*float64(height)/float64(n) < float64(m.Verified) {
				k++
			}
			if at0 := float64(m.Verified); k == 1 && at0 <= float64(height)/float64(n)/4 {
				at[0], k = m.End.Seconds(), 1
				if m.Received >= 0 {
					received[0] = float64(m.Received)
				}
			}
			last = m
			continue
		}
		if m.Verified <= last.Verified {
			if m.Verified < last.Verified {
				last = m // a store that was lost: its second way is not drawn over the first
			}
			continue
		}
		for k <= n && float64(k)*float64(height)/float64(n) <= float64(m.Verified) {
			want := float64(k) * float64(height) / float64(n)
			part := (want - float64(last.Verified)) / float64(m.Verified-last.Verified)
			at[k] = last.End.Seconds() + part*(m.End-last.End).Seconds()
			if m.Received >= 0 && last.Received >= 0 {
				received[k] = float64(last.Received) + part*float64(m.Received-last.Received)
			}
			k++
		}
		last = m
	}
	return at, received
}
