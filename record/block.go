package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// BlockSize is how many operations a writer gathers into one block.
const BlockSize = 4096

// maxBlockOps and maxBlockBytes bound what one block may hold, so that a
// damaged block cannot make a reader allocate without limit.
const (
	maxBlockOps   = 1 << 20
	maxBlockBytes = 256 << 20
)

// A block is one frame:
//
//	version  1 byte, 1
//	length   uvarint, bytes of the columns before compression
//	columns  one zstd frame
//	crc      4 bytes, little endian, CRC-32C of everything before it
//
// The columns, in order: the number of operations (uvarint); the dictionary of
// classes (uvarint count, then per class uvarint length and bytes); then the
// fields in the order of the col constants. Each column begins with its mode,
// either constant (one value follows) or plain (one value per operation
// follows); values are zigzag varints. Times are stored as the differences
// that are small: LastByte to the operation before, Start back from LastByte,
// the first byte and the intended start from Start. Arithmetic wraps around,
// so that every int64 survives.
const blockVersion = 1

const (
	columnConstant = 0
	columnPlain    = 1
)

// The order of columns is part of the format: a column may be relative to one
// before it.
const (
	colClass = iota // index into the dictionary plus one; 0 for none
	colKind
	colOutcome
	colStatus
	colWorker
	colObject
	colOffset
	colLength
	colBytes     // Bytes − Length
	colLastByte  // LastByte − LastByte of the operation before
	colStart     // LastByte − Start
	colIntended  // Start − Intended
	colHasFirst  // 1 when FirstByte is not 0
	colFirstByte // FirstByte − Start; 0 when FirstByte is 0
	numColumns
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCorrupt is wrapped by errors about data that is not what was written.
var ErrCorrupt = errors.New("corrupt data")

// The coders keep only scratch memory between calls and are safe for
// concurrent use.
var (
	blockEncoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(2),
			zstd.WithWindowSize(256<<10),
			zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderCRC(false)) // the block has its own
		if err != nil {
			panic(err) // the options are constants
		}
		return e
	})
	blockDecoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil,
			zstd.WithDecoderConcurrency(2),
			zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxBlockBytes))
		if err != nil {
			panic(err)
		}
		return d
	})
	blockScratch = sync.Pool{New: func() any { return new(columns) }}
)

// columns is the scratch memory of one encoding or decoding.
type columns struct {
	raw    []byte
	values []int64
}

// AppendBlock appends the operations to dst as one self-contained block with
// a checksum. Nothing is lost or rounded. It panics when there are more than
// 2^20 operations; writers gather [BlockSize].
func AppendBlock(dst []byte, ops []Op) []byte {
	if len(ops) > maxBlockOps {
		panic(fmt.Sprintf("record: %d operations in one block; at most %d", len(ops), maxBlockOps))
	}
	s := blockScratch.Get().(*columns)
	defer blockScratch.Put(s)

	s.values = slices.Grow(s.values[:0], len(ops))[:len(ops)]
	s.raw = binary.AppendUvarint(s.raw[:0], uint64(len(ops)))
	s.raw = appendDictionary(s.raw, ops, s.values)
	s.raw = appendColumn(s.raw, s.values)
	for c := colClass + 1; c < numColumns; c++ {
		columnValues(c, ops, s.values)
		s.raw = appendColumn(s.raw, s.values)
	}

	start := len(dst)
	dst = append(dst, blockVersion)
	dst = binary.AppendUvarint(dst, uint64(len(s.raw)))
	dst = blockEncoder().EncodeAll(s.raw, dst)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendDictionary writes the distinct classes and sets index to each
// operation's place among them.
func appendDictionary(raw []byte, ops []Op, index []int64) []byte {
	var names []string
	var seen map[string]int64
	for i := range ops {
		class := ops[i].Class
		if class == "" {
			index[i] = 0
			continue
		}
		if seen == nil {
			seen = make(map[string]int64)
		}
		at, ok := seen[class]
		if !ok {
			names = append(names, class)
			at = int64(len(names))
			seen[class] = at
		}
		index[i] = at
	}
	raw = binary.AppendUvarint(raw, uint64(len(names)))
	for _, n := range names {
		raw = binary.AppendUvarint(raw, uint64(len(n)))
		raw = append(raw, n...)
	}
	return raw
}

func columnValues(c int, ops []Op, v []int64) {
	switch c {
	case colKind:
		for i := range ops {
			v[i] = int64(ops[i].Kind)
		}
	case colOutcome:
		for i := range ops {
			v[i] = int64(ops[i].Outcome)
		}
	case colStatus:
		for i := range ops {
			v[i] = int64(ops[i].Status)
		}
	case colWorker:
		for i := range ops {
			v[i] = int64(ops[i].Worker)
		}
	case colObject:
		for i := range ops {
			v[i] = int64(ops[i].Object)
		}
	case colOffset:
		for i := range ops {
			v[i] = ops[i].Offset
		}
	case colLength:
		for i := range ops {
			v[i] = ops[i].Length
		}
	case colBytes:
		for i := range ops {
			v[i] = ops[i].Bytes - ops[i].Length
		}
	case colLastByte:
		var previous int64
		for i := range ops {
			v[i] = ops[i].LastByte - previous
			previous = ops[i].LastByte
		}
	case colStart:
		for i := range ops {
			v[i] = ops[i].LastByte - ops[i].Start
		}
	case colIntended:
		for i := range ops {
			v[i] = ops[i].Start - ops[i].Intended
		}
	case colHasFirst:
		for i := range ops {
			v[i] = 0
			if ops[i].FirstByte != 0 {
				v[i] = 1
			}
		}
	case colFirstByte:
		for i := range ops {
			v[i] = 0
			if ops[i].FirstByte != 0 {
				v[i] = ops[i].FirstByte - ops[i].Start
			}
		}
	}
}

func appendColumn(raw []byte, v []int64) []byte {
	if len(v) == 0 {
		return raw
	}
	constant := true
	for _, x := range v[1:] {
		if x != v[0] {
			constant = false
			break
		}
	}
	if constant {
		raw = append(raw, columnConstant)
		return binary.AppendVarint(raw, v[0])
	}
	raw = append(raw, columnPlain)
	raw = slices.Grow(raw, len(v)*binary.MaxVarintLen64)
	for _, x := range v {
		u := uint64(x)<<1 ^ uint64(x>>63)
		for u >= 0x80 {
			raw = append(raw, byte(u)|0x80)
			u >>= 7
		}
		raw = append(raw, byte(u))
	}
	return raw
}

// DecodeBlock appends the operations of a block to dst. Its errors wrap
// [ErrCorrupt]; dst is then returned as it came.
func DecodeBlock(b []byte, dst []Op) ([]Op, error) {
	s := blockScratch.Get().(*columns)
	defer blockScratch.Put(s)
	ops, err := s.decode(b, dst)
	if err != nil {
		return dst, fmt.Errorf("record: block of %d bytes: %w: %w", len(b), ErrCorrupt, err)
	}
	return ops, nil
}

func (s *columns) decode(b []byte, dst []Op) ([]Op, error) {
	if len(b) < 1+1+4 {
		return nil, fmt.Errorf("too short: %d bytes", len(b))
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return nil, fmt.Errorf("checksum %08x, want %08x", got, sum)
	}
	if body[0] != blockVersion {
		return nil, fmt.Errorf("block format %d; this program reads %d", body[0], blockVersion)
	}
	length, n := binary.Uvarint(body[1:])
	if n <= 0 || length > maxBlockBytes {
		return nil, errors.New("implausible length")
	}
	raw, err := blockDecoder().DecodeAll(body[1+n:], s.raw[:0])
	if err != nil {
		return nil, err
	}
	s.raw = raw
	if uint64(len(raw)) != length {
		return nil, fmt.Errorf("%d bytes of columns, want %d", len(raw), length)
	}

	in := input{b: raw}
	count := in.uvarint()
	if count > maxBlockOps {
		return nil, fmt.Errorf("%d operations; at most %d", count, maxBlockOps)
	}
	classes := in.dictionary()
	if in.err != nil {
		return nil, in.err
	}
	s.values = slices.Grow(s.values[:0], int(count))[:count]
	at := len(dst)
	dst = slices.Grow(dst, int(count))[:at+int(count)]
	ops := dst[at:]
	clear(ops)
	for c := range numColumns {
		in.column(s.values)
		if in.err != nil {
			return nil, in.err
		}
		if err := setColumn(c, ops, s.values, classes); err != nil {
			return nil, err
		}
	}
	if len(in.b) != 0 {
		return nil, fmt.Errorf("%d bytes after the last column", len(in.b))
	}
	return dst, nil
}

func setColumn(c int, ops []Op, v []int64, classes []string) error {
	switch c {
	case colClass:
		for i := range ops {
			switch {
			case v[i] == 0:
			case v[i] > 0 && v[i] <= int64(len(classes)):
				ops[i].Class = classes[v[i]-1]
			default:
				return fmt.Errorf("class %d of %d", v[i], len(classes))
			}
		}
	case colKind:
		for i := range ops {
			if v[i] < 0 || v[i] >= int64(numOpKinds) {
				return fmt.Errorf("unknown kind of operation %d", v[i])
			}
			ops[i].Kind = OpKind(v[i])
		}
	case colOutcome:
		for i := range ops {
			if v[i] < 0 || v[i] >= int64(numOutcomes) {
				return fmt.Errorf("unknown outcome %d", v[i])
			}
			ops[i].Outcome = Outcome(v[i])
		}
	case colStatus:
		for i := range ops {
			ops[i].Status = uint16(v[i])
		}
	case colWorker:
		for i := range ops {
			ops[i].Worker = uint32(v[i])
		}
	case colObject:
		for i := range ops {
			ops[i].Object = uint32(v[i])
		}
	case colOffset:
		for i := range ops {
			ops[i].Offset = v[i]
		}
	case colLength:
		for i := range ops {
			ops[i].Length = v[i]
		}
	case colBytes:
		for i := range ops {
			ops[i].Bytes = ops[i].Length + v[i]
		}
	case colLastByte:
		var previous int64
		for i := range ops {
			previous += v[i]
			ops[i].LastByte = previous
		}
	case colStart:
		for i := range ops {
			ops[i].Start = ops[i].LastByte - v[i]
		}
	case colIntended:
		for i := range ops {
			ops[i].Intended = ops[i].Start - v[i]
		}
	case colHasFirst:
		for i := range ops {
			ops[i].FirstByte = v[i]
		}
	case colFirstByte:
		for i := range ops {
			if ops[i].FirstByte != 0 {
				ops[i].FirstByte = ops[i].Start + v[i]
			}
		}
	}
	return nil
}

var errShort = errors.New("columns end early")

// input reads the columns; after its first error it stays failed.
type input struct {
	b   []byte
	err error
}

func (in *input) uvarint() uint64 {
	x, n := binary.Uvarint(in.b)
	if n <= 0 {
		in.fail()
		return 0
	}
	in.b = in.b[n:]
	return x
}

func (in *input) fail() {
	if in.err == nil {
		in.err = errShort
	}
	in.b = nil
}

func (in *input) dictionary() []string {
	n := in.uvarint()
	if n > uint64(len(in.b)) {
		in.fail()
		return nil
	}
	var names []string
	for range n {
		size := in.uvarint()
		if size > uint64(len(in.b)) {
			in.fail()
			return nil
		}
		names = append(names, string(in.b[:size]))
		in.b = in.b[size:]
	}
	return names
}

func (in *input) column(v []int64) {
	if len(v) == 0 || in.err != nil {
		return
	}
	if len(in.b) == 0 || in.b[0] > columnPlain {
		in.fail()
		return
	}
	mode := in.b[0]
	b := in.b[1:]
	if mode == columnConstant {
		x, n := binary.Varint(b)
		if n <= 0 {
			in.fail()
			return
		}
		for i := range v {
			v[i] = x
		}
		in.b = b[n:]
		return
	}
	for i := range v {
		if len(b) > 0 && b[0] < 0x80 { // most columns hold small values
			u := uint64(b[0])
			v[i] = int64(u>>1) ^ -int64(u&1)
			b = b[1:]
			continue
		}
		x, n := binary.Varint(b)
		if n <= 0 {
			in.fail()
			return
		}
		v[i] = x
		b = b[n:]
	}
	in.b = b
}
