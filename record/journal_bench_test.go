package record

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// syntheticJob is the job of an object that is stored, its strings as long as a
// system's are.
func syntheticJob(i int64) Job {
	at := time.Duration(i) * 100 * time.Millisecond
	return Job{
		Object: i, State: JobDurable, Attempts: 1 + int(i%7)/6,
		Name: fmt.Sprintf("0123456789abcdef/dir%03d/file-%08d", i%100, i),
		Ref:  fmt.Sprintf("URI:CHK:%026d:%052d:3:10:%d", i, i, 1000+i),
		Size: 1000 + i, SHA256: fmt.Sprintf("%064x", i),
		Began: at, Accepted: at + time.Second, Durable: at + time.Minute,
	}
}

// syntheticPoll is like one of siad: some money, and a gap now and then.
func syntheticPoll(seq int64, calls, readings int) Poll {
	at := time.Duration(seq) * time.Minute
	p := Poll{Seq: seq, Intended: at, Start: at + 100*time.Microsecond, End: at + 2*time.Second}
	for i := range calls {
		start := p.Start + time.Duration(i)*time.Millisecond
		c := PollCall{Name: fmt.Sprintf("/renter/call%d", i), Start: start, End: start + time.Duration(seq%1000)*time.Microsecond}
		if (seq+int64(i))%500 == 0 {
			c.Error = `Get "http://127.0.0.1:9980/renter": dial tcp: connection refused`
		}
		p.Calls = append(p.Calls, c)
	}
	for i := range readings {
		r := Reading{Name: fmt.Sprintf("reading_%d", i), Value: float64(seq*int64(i)) * 1.1}
		if i%3 == 0 {
			r.Exact = fmt.Sprintf("%d%015d%09d", 1+seq, i, seq)
		}
		if i == 4 && seq%50 == 0 {
			r.Value, r.Bad = math.NaN(), "negative"
		}
		p.Readings = append(p.Readings, r)
	}
	return p
}

func BenchmarkJobsInBatches(b *testing.B) {
	r := create(b)
	w, err := r.Begin("c001", 1, false, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	batch := make([]Job, 0, 1000)
	b.ResetTimer()
	for i := range b.N {
		if batch = append(batch, syntheticJob(int64(i))); len(batch) == cap(batch) || i == b.N-1 {
			if err := w.Jobs(batch...); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	b.StopTimer()
	reportSize(b, r)
	start := time.Now()
	n := 0
	for _, err := range r.Reader.Jobs(w.ID()) {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	if n != b.N {
		b.Fatalf("%d of %d", n, b.N)
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N), "ns/read")
}

// BenchmarkJobsOneByOne is what a queue does: each change of a job is committed
// before it goes on.
func BenchmarkJobsOneByOne(b *testing.B) {
	for _, workers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			r := create(b)
			w, err := r.Begin("c001", 1, false, time.Now())
			if err != nil {
				b.Fatal(err)
			}
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range workers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if err := w.Jobs(syntheticJob(i)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

func BenchmarkPolls(b *testing.B) {
	for _, readings := range []int{25, 150} {
		b.Run(fmt.Sprint(readings), func(b *testing.B) {
			r := create(b)
			w, err := r.Begin("c001", 1, false, time.Now())
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for i := range b.N {
				if err := w.Poll(syntheticPoll(int64(i), 6, readings)); err != nil {
					b.Fatal(err)
				}
			}
			if err := r.Flush(); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			reportSize(b, r)
			start := time.Now()
			n := 0
			for p, err := range r.Reader.Polls(w.ID()) {
				if err != nil {
					b.Fatal(err)
				}
				n += len(p.Readings)
			}
			if n != b.N*readings {
				b.Fatalf("%d readings of %d polls", n, b.N)
			}
			b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N), "ns/read")
		})
	}
}

// BenchmarkContinue is a trial that goes on after a million operations.
func BenchmarkContinue(b *testing.B) {
	r := create(b)
	dir := r.Dir()
	w, err := r.Begin("c001", 1, false, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	source := newSynthetic(1, 1000)
	for range 1_000_000 / BlockSize {
		if err := w.Block(AppendBlock(nil, source.take(BlockSize))); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		r, err := Resume(dir, nil, func(Trial) bool { return true })
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := r.Continue(Trial{ID: w.ID()}); err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func reportSize(b *testing.B, r *Run) {
	var bytes int64
	if err := r.Reader.db.QueryRow(`SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&bytes); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "B/row")
}
