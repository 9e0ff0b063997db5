package chain

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpu is what this process has used so far.
func cpu() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkChain makes chains and replays them: what a block of each form and
// fullness costs, in time, in time of the processor, and in bytes.
func BenchmarkChain(b *testing.B) {
	for _, form := range forms {
		for _, n := range []int{0, 10, 100} {
			s := Spec{Blocks: 3000 / max(1, n/10), Transactions: n, Form: form, Seed: 1}
			cache := Cache{b.TempDir()}
			b.Run(fmt.Sprintf("make/%s/%d", form, n), func(b *testing.B) {
				began, used := time.Now(), cpu()
				for range b.N {
					b.StopTimer()
					os.RemoveAll(cache.Dir)
					b.StartTimer()
					c, err := cache.Chain(b.Context(), s, nil)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(c.Bytes)/float64(s.Blocks), "B/block")
					b.ReportMetric(float64(c.Store.Bytes)/float64(c.Bytes), "store/bytes")
				}
				blocks := float64(s.Blocks * b.N)
				b.ReportMetric(blocks/time.Since(began).Seconds(), "blocks/s")
				b.ReportMetric(float64((cpu()-used).Microseconds())/blocks, "cpu-µs/block")
			})
			c, err := cache.Chain(b.Context(), s, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("replay/%s/%d", form, n), func(b *testing.B) {
				used := time.Duration(0)
				var all, headers, read, validate, add time.Duration
				for range b.N {
					store, err := OpenStore(b.TempDir(), s.Network(), s.Genesis(), StoreOptions{})
					if err != nil {
						b.Fatal(err)
					}
					before := cpu()
					r, err := Replay(b.Context(), c, store.Manager(), ReplayOptions{})
					if err != nil {
						b.Fatal(err)
					}
					used += cpu() - before
					all += r.Elapsed
					headers += r.Headers
					for _, p := range r.Batches {
						read += p.Read
						validate += p.Validate
						add += p.Add
					}
					store.Close()
					info, err := os.Stat(store.Path())
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(info.Size())/float64(c.Store.Bytes), "store/made")
				}
				blocks := float64(s.Blocks * b.N)
				per := func(d time.Duration) float64 { return float64(d.Microseconds()) / blocks }
				b.ReportMetric(blocks/all.Seconds(), "blocks/s")
				b.ReportMetric(per(used), "cpu-µs/block")
				b.ReportMetric(per(headers), "headers-µs/block")
				b.ReportMetric(per(read), "read-µs/block")
				b.ReportMetric(per(validate), "validate-µs/block")
				b.ReportMetric(per(add), "add-µs/block")
			})
		}
	}
}
