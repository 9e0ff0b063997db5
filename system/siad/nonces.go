package siad

import (
	"bytes"
	"embed"
	"encoding/binary"
	"fmt"

	"go.sia.tech/core/types"
)

// cheap is the height above which a block takes some ten thousand hashes and less.
// Below, where the difficulty is still that with which dev builds begin and falls
// slowly, it takes half a billion for all: a minute or some.
const cheap = 300

// found has a file for each first block that was met so far, that of dev builds of
// 1.5.9 and of the last revision, named by its first eight digits: the nonces of the
// blocks up to cheap, divided by nonceUnit, as uvarints. They are what solve finds,
// save its search, and decide nothing: one that does not fit is searched for.
//
//go:embed nonces/*.bin
var found embed.FS

// nonces are those above a first block; none when it was never met.
func nonces(first types.BlockID) (all []uint64) {
	rest, err := found.ReadFile(fmt.Sprintf("nonces/%x.bin", first[:4]))
	if err != nil {
		return nil
	}
	for len(rest) > 0 {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return all
		}
		rest, all = rest[size:], append(all, n*nonceUnit)
	}
	return all
}

// solved says whether b has a nonce that does.
func solved(b *types.Block, target types.Hash256) bool {
	id := b.ID()
	return bytes.Compare(target[:], id[:]) >= 0
}
