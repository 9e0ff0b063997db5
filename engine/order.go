package engine

import "math/rand/v2"

// Order is the order of the cells within one block: a permutation of 0…n-1
// that depends on the seed and the block alone, so that a resumed run goes on
// in the order it had. All cells of a block are executed before the next block
// begins, each block in an order of its own, so that drift of the machine hits
// every cell alike (a randomised complete block design).
func Order(seed uint64, block, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(block)+1)).Perm(n)
}
