package record

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// syntheticJob is the job of an object that is stored, its strings as long as a
// system's are.
func syntheticJob(i int64) Job {
	at := time.Duration(i) * 100 * time.Millisecond
	return Job{
		Object: i, State: JobDurable, Attempts: 1 + int(i%7)/6,
		Name:  fmt.Sprintf("0123456789abcdef/dir%03d/file-%08d", i%100, i),
		Ref:   fmt.Sprintf("URI:CHK:%026d:%052d:3:10:%d", i, i, 1000+i),
		Size:  1000 + i,
		Began: at, Accepted: at + time.Second, Durable: at + time.Minute,
	}
}

// syntheticPoll is like one of siad: some money, and a gap now and then.
func syntheticPoll(seq int64, calls, readings int) Poll {
	at := time.Duration(seq) * time.Minute
	p := Poll{Seq: seq, Intended: at, Start: at + 100*time.Microsecond, End: at + 2*time.Second}
	for i := range calls {
		start := p.Start + time.Duration(i)*time.Millisecond
		c := PollCall{Name: fmt.Sprintf("/renter/call%d", i), Start: start, End: start +
			time.Duration(seq%1000)*time.Microsecond}
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
			r.Value, r.Bad = 0, "negative"
		}
		p.Readings = append(p.Readings, r)
	}
	return p
}

// syntheticMark is mark i of a swarm of 32 nodes, of which each leaves one for
// each percent of 100 MB, at a hundred polls a second. It can be told from i alone.
func syntheticMark(i int64) Mark {
	rng := rand.New(rand.NewPCG(uint64(i), 3))
	at := 100*time.Millisecond*time.Duration(i/32) + time.Duration(rng.IntN(10_000_000))
	verified := (1+i/32)*1_000_000 + rng.Int64N(16)*16384
	m := Mark{
		Node: int(i % 32), Before: at - 100*time.Millisecond, Start: at, End: at + time.Duration(rng.IntN(3_000_000)),
		Verified: verified, Written: verified - rng.Int64N(2)*16384, Received: verified + rng.Int64N(10)*16384,
		Sent: rng.Int64N(2 * verified), Peers: rng.IntN(32),
	}
	switch i % 7 {
	case 1:
		m.Written, m.Received, m.Sent, m.Peers = -1, -1, -1, -1
	case 2:
		m.Complete = true
	case 3:
		m.Trouble = "hash check failed: \"ü\"\n"
	case 4:
		m.Written, m.Peers = 0, 0
	}
	return m
}

func syntheticMarks(from, n int64) []Mark {
	marks := make([]Mark, n)
	for i := range marks {
		marks[i] = syntheticMark(from + int64(i))
	}
	return marks
}
