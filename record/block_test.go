package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

func TestBlockKeepsEveryBit(t *testing.T) {
	extreme := Op{Kind: OpDelete, Outcome: Cancelled, Status: math.MaxUint16, Worker: math.MaxUint32,
		Object: math.MaxUint32,
		Offset: math.MaxInt64, Length: math.MinInt64, Bytes: math.MaxInt64, Intended: math.MinInt64,
		Start:     math.MaxInt64,
		FirstByte: math.MinInt64, LastByte: math.MinInt64, Class: "ö\x00"}
	random := make([]Op, 1000)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range random {
		random[i] = Op{Kind: OpKind(r.IntN(int(numOpKinds))), Outcome: Outcome(r.IntN(int(numOutcomes))),
			Status: uint16(r.Uint32()), Worker: r.Uint32(), Object: r.Uint32(),
			Offset: int64(r.Uint64()), Length: int64(r.Uint64()), Bytes: int64(r.Uint64()),
			Intended: int64(r.Uint64()), Start: int64(r.Uint64()), FirstByte: int64(r.Uint64()),
			LastByte: int64(r.Uint64()),
			Class:    []string{"", "a", "b", strconv.Itoa(i)}[r.IntN(4)]}
		if r.IntN(2) == 0 {
			random[i].FirstByte = 0
		}
	}
	for name, ops := range map[string][]Op{
		"none":      nil,
		"zero":      {{}},
		"one":       {extreme},
		"extremes":  {{}, extreme, {}, extreme, extreme},
		"random":    random,
		"synthetic": newSynthetic(2, 50_000).take(BlockSize),
	} {
		prefix := []byte("kept")
		b := AppendBlock(prefix, ops)
		if !bytes.HasPrefix(b, prefix) {
			t.Errorf("%s: AppendBlock does not append", name)
		}
		got, err := DecodeBlock(b[len(prefix):], []Op{extreme})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got[0] != extreme || !slices.Equal(got[1:], ops) {
			t.Errorf("%s: not what was encoded", name)
		}
	}
}

func TestEveryDamageOfABlockIsFound(t *testing.T) {
	ops := newSynthetic(3, 1000).take(100)
	b := AppendBlock(nil, ops)
	for i := range b {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(b)
			bad[i] ^= flip
			if got, err := DecodeBlock(bad, nil); !errors.Is(err, ErrCorrupt) || got != nil {
				t.Fatalf("byte %d changed: %v", i, err)
			}
		}
		if _, err := DecodeBlock(b[:i], nil); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut after byte %d: %v", i, err)
		}
	}
}

// Blocks whose checksum is right but whose content is not: written by another
// version, or by a broken generator.
func FuzzDecodeBlock(f *testing.F) {
	f.Add([]byte{3, 0, 0, 2})
	f.Add(binary.AppendUvarint(nil, math.MaxUint64))
	f.Fuzz(func(t *testing.T, columns []byte) {
		b := append([]byte{blockVersion}, binary.AppendUvarint(nil, uint64(len(columns)))...)
		b = blockEncoder().EncodeAll(columns, b)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		ops, err := DecodeBlock(b, nil)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeBlock(AppendBlock(nil, ops), nil)
		if err != nil || !slices.Equal(again, ops) {
			t.Fatalf("not the same when encoded again: %v", err)
		}
	})
}
