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

// maxBlockOps and maxBlockBytes limit the content of a block, so that a damaged block
// cannot make a reader allocate without limit.
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
// classes (uvarint count, then per class uvarint length and bytes); the classes;
// then the fields in the order of opColumns. Each column begins with its mode,
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

// opColumns are the columns after that of classes (whose values are positions in the
// dictionary from 1, or 0 for none). Their order is part of the format: set may use fields
// that earlier columns have set.
var opColumns = [...]struct {
	get   func(*Op) int64
	set   func(*Op, int64)
	below int64 // a value outside [0, below) is corrupt; 0: any value is valid
	delta bool  // the stored value is the difference to the previous operation
}{
	{get: func(o *Op) int64 { return int64(o.Kind) }, set: func(o *Op, v int64) { o.Kind = OpKind(v) },
		below: int64(numOpKinds)},
	{get: func(o *Op) int64 { return int64(o.Outcome) }, set: func(o *Op, v int64) { o.Outcome = Outcome(v) },
		below: int64(numOutcomes)},
	{get: func(o *Op) int64 { return int64(o.Status) }, set: func(o *Op, v int64) { o.Status = uint16(v) }},
	{get: func(o *Op) int64 { return int64(o.Worker) }, set: func(o *Op, v int64) { o.Worker = uint32(v) }},
	{get: func(o *Op) int64 { return int64(o.Object) }, set: func(o *Op, v int64) { o.Object = uint32(v) }},
	{get: func(o *Op) int64 { return o.Offset }, set: func(o *Op, v int64) { o.Offset = v }},
	{get: func(o *Op) int64 { return o.Length }, set: func(o *Op, v int64) { o.Length = v }},
	{get: func(o *Op) int64 { return o.Bytes - o.Length }, set: func(o *Op, v int64) { o.Bytes = o.Length + v }},
	{get: func(o *Op) int64 { return o.LastByte }, set: func(o *Op, v int64) { o.LastByte = v }, delta: true},
	{get: func(o *Op) int64 { return o.LastByte - o.Start }, set: func(o *Op, v int64) { o.Start = o.LastByte - v }},
	{get: func(o *Op) int64 { return o.Start - o.Intended }, set: func(o *Op, v int64) { o.Intended = o.Start - v }},
	{get: hasFirstByte, set: func(o *Op, v int64) { o.FirstByte = v }},
	{
		get: func(o *Op) int64 { return hasFirstByte(o) * (o.FirstByte - o.Start) },
		set: func(o *Op, v int64) {
			if o.FirstByte != 0 {
				o.FirstByte = o.Start + v
			}
		},
	},
}

func hasFirstByte(o *Op) int64 {
	if o.FirstByte != 0 {
		return 1
	}
	return 0
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCorrupt is wrapped by errors about data that is not what was written.
var ErrCorrupt = errors.New("corrupt data")

// The encoder and decoder keep only scratch memory between calls and are safe for
// concurrent use.
var (
	blockEncoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(2),
			zstd.WithWindowSize(256<<10),
			zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderCRC(false)) // the block has its own checksum
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

// AppendBlock appends the operations to dst as one self-contained block with a checksum,
// without loss or rounding. It panics with more than 2^20 operations; writers use
// [BlockSize].
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
	for c := range opColumns {
		column := &opColumns[c]
		previous := int64(0)
		for i := range ops {
			v := column.get(&ops[i])
			s.values[i] = v - previous
			if column.delta {
				previous = v
			}
		}
		s.raw = appendColumn(s.raw, s.values)
	}

	start := len(dst)
	dst = append(dst, blockVersion)
	dst = binary.AppendUvarint(dst, uint64(len(s.raw)))
	dst = blockEncoder().EncodeAll(s.raw, dst)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendDictionary writes the distinct classes and sets index to the position of each
// operation's class.
func appendDictionary(raw []byte, ops []Op, index []int64) []byte {
	var names []string
	for i := range ops {
		index[i] = 0
		if class := ops[i].Class; class != "" {
			if !slices.Contains(names, class) {
				names = append(names, class)
			}
			index[i] = int64(slices.Index(names, class)) + 1
		}
	}
	raw = binary.AppendUvarint(raw, uint64(len(names)))
	for _, n := range names {
		raw = binary.AppendUvarint(raw, uint64(len(n)))
		raw = append(raw, n...)
	}
	return raw
}

func appendColumn(raw []byte, v []int64) []byte {
	if len(v) == 0 {
		return raw
	}
	if !slices.ContainsFunc(v, func(x int64) bool { return x != v[0] }) {
		raw = append(raw, columnConstant)
		return binary.AppendVarint(raw, v[0])
	}
	raw = append(raw, columnPlain)
	raw = slices.Grow(raw, len(v)*binary.MaxVarintLen64)
	for _, x := range v {
		raw = binary.AppendVarint(raw, x)
	}
	return raw
}

// DecodeBlock appends the operations of a block to dst. Its errors wrap [ErrCorrupt]; then
// dst is returned unchanged.
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
	at := len(dst)
	dst = slices.Grow(dst, int(count))[:at+int(count)]
	clear(dst[at:])
	if err := s.fill(&in, classes, dst[at:]); err != nil {
		return nil, err
	}
	if len(in.b) != 0 {
		return nil, fmt.Errorf("%d bytes after the last column", len(in.b))
	}
	return dst, nil
}

// fill reads the columns into operations.
func (s *columns) fill(in *input, classes []string, ops []Op) error {
	s.values = slices.Grow(s.values[:0], len(ops))[:len(ops)]
	in.column(s.values)
	if in.err != nil {
		return in.err
	}
	for i, v := range s.values {
		if v < 0 || v > int64(len(classes)) {
			return fmt.Errorf("class %d of %d", v, len(classes))
		}
		if v > 0 {
			ops[i].Class = classes[v-1]
		}
	}
	for c := range opColumns {
		in.column(s.values)
		if in.err != nil {
			return in.err
		}
		column := &opColumns[c]
		previous := int64(0)
		for i, v := range s.values {
			if column.below > 0 && (v < 0 || v >= column.below) {
				return fmt.Errorf("column %d: unknown value %d", c, v)
			}
			v += previous
			column.set(&ops[i], v)
			if column.delta {
				previous = v
			}
		}
	}
	return nil
}

// input reads the columns. After its first error all reads fail.
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
		in.err = errors.New("columns end early")
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
	mode, b := in.b[0], in.b[1:]
	for i := range v {
		if i > 0 && mode == columnConstant {
			v[i] = v[0]
			continue
		}
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
