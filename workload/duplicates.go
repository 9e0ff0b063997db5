package workload

import "math"

// duplicates says which of n objects are copies of earlier ones: an exact share
// of them, evenly among the others, each of an original before it that the seed
// chooses.
type duplicates struct {
	n     int
	share uint64 // in billionths
	seed  uint64
}

const billion = 1_000_000_000

func newDuplicates(n int, share float64, seed uint64) duplicates {
	return duplicates{n, uint64(math.Round(share * billion)), Mix(seed, duplicateKey)}
}

const duplicateKey = 0x647570 // "dup"

// copies is how many of the first i objects are duplicates.
func (d duplicates) copies(i int) int {
	if d.share == billion {
		return max(0, i-1) // the first cannot be one
	}
	// Not i·share, which may not fit.
	i64 := uint64(i)
	return int(i64/billion*d.share + i64%billion*d.share/billion)
}

// originals is how many of the first i objects are none.
func (d duplicates) originals(i int) int { return i - d.copies(i) }

// rank is the number, among the originals, of the one whose content object i has.
func (d duplicates) rank(i int) int {
	before := d.originals(i)
	if d.originals(i+1) > before {
		return before
	}
	return int(Mix(d.seed, uint64(i)) % uint64(before))
}
