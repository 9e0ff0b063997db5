package record

import "strconv"

// BlockName is how a block is called where people read: "block 1" is the first
// that counts, which is 0 in files; those before it are warm-ups.
func BlockName(block int) string {
	if block < 0 {
		return "warm-up"
	}
	return "block " + strconv.Itoa(block+1)
}
