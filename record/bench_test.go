package record

import (
	"testing"
	"time"
)

func BenchmarkEncode(b *testing.B) {
	ops := newSynthetic(1, 50_000).take(BlockSize)
	var dst []byte
	b.ResetTimer()
	for range b.N {
		dst = AppendBlock(dst[:0], ops)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/BlockSize, "ns/operation")
	b.ReportMetric(float64(len(dst))/BlockSize, "B/operation")
}

func BenchmarkDecode(b *testing.B) {
	block := AppendBlock(nil, newSynthetic(1, 50_000).take(BlockSize))
	var ops []Op
	b.ResetTimer()
	for range b.N {
		ops, _ = DecodeBlock(block, ops[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/BlockSize, "ns/operation")
}

func BenchmarkSummary(b *testing.B) {
	ops := newSynthetic(1, 50_000).take(BlockSize)
	s := NewSummary()
	b.ResetTimer()
	for range b.N {
		s.Ops(ops)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/BlockSize, "ns/operation")
}

// BenchmarkBlocks is what the engine does with what a generator sends: decode,
// summarise, window, write.
func BenchmarkBlocks(b *testing.B) {
	r := create(b)
	w, err := r.Begin("c001", 1, false, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	s := newSynthetic(1, 50_000)
	blocks := make([][]byte, 64)
	for i := range blocks {
		blocks[i] = AppendBlock(nil, s.take(BlockSize))
	}
	b.ResetTimer()
	for i := range b.N {
		if err := w.Block(blocks[i%len(blocks)]); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.End(Trial{}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/BlockSize, "ns/operation")
}
