package link

import (
	"fmt"
	"maps"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Stats are the statistics of an emulator since it started. Counters only grow, so the
// difference of two (Since) describes the time between them.
type Stats struct {
	CPU      time.Duration // of all threads of the data path
	Drops    Drops
	Hosts    map[string]HostStats
	Lateness Lateness // of every packet whose departure was scheduled
}

// Count counts segments as on the wire, and their bytes with framing.
type Count struct {
	Segments int64
	Bytes    int64
}

func (c *Count) add(segments int32, bytes int64) {
	c.Segments += int64(segments)
	c.Bytes += bytes
}

// plus adds (sign 1) or subtracts (sign -1).
func (c Count) plus(d Count, sign int64) Count {
	return Count{c.Segments + sign*d.Segments, c.Bytes + sign*d.Bytes}
}

// Causes of drops.
const (
	DropUp        = "queue-up"   // the uplink's queue was full
	DropDown      = "queue-down" // the downlink's queue was full
	DropLoss      = "loss"       // as requested
	DropNoRoute   = "no-route"   // not for one of our hosts: mostly multicast
	DropMemory    = "memory"     // the emulator's own limit: it makes results invalid
	DropMalformed = "malformed"
	DropWrite     = "write"   // the kernel refused: the host is gone or down, or out of memory
	DropUnread    = "unread"  // packets (not segments) that the emulator was too slow to read; not counted as sent
	DropCarrier   = "carrier" // lost between machines, approximately
)

// Drops counts dropped segments by cause.
type Drops map[string]int64

// HostStats is one host's link.
type HostStats struct {
	Sent     Count // entered the uplink
	Received Count // left the downlink
}

// Merge returns the sum of the statistics of two threads or machines.
func (s Stats) Merge(o Stats) Stats { return s.plus(o, 1) }

// Since returns what happened between before and s.
func (s Stats) Since(before Stats) Stats { return s.plus(before, -1) }

func (s Stats) plus(o Stats, sign int64) Stats {
	sum := Stats{CPU: s.CPU + time.Duration(sign)*o.CPU, Drops: Drops{}, Hosts: map[string]HostStats{},
		Lateness: s.Lateness.plus(o.Lateness, sign)}
	maps.Copy(sum.Drops, s.Drops)
	for cause, c := range o.Drops {
		sum.Drops[cause] += sign * c
	}
	maps.Copy(sum.Hosts, s.Hosts)
	for name, h := range o.Hosts {
		a := s.Hosts[name]
		sum.Hosts[name] = HostStats{a.Sent.plus(h.Sent, sign), a.Received.plus(h.Received, sign)}
	}
	return sum
}

// all returns what all hosts have sent and received.
func (s Stats) all() (sum HostStats) {
	for _, h := range s.Hosts {
		sum = HostStats{sum.Sent.plus(h.Sent, 1), sum.Received.plus(h.Received, 1)}
	}
	return sum
}

// LatenessLimit is how late packets of this path may leave, at the 99th percentile,
// before results are invalid: 1 ms, or 5 % of the one-way delay, whichever is more.
func (w Want) LatenessLimit() time.Duration {
	return max(time.Millisecond, w.RTT/2/20)
}

// fewPackets is how many packets a 99th percentile needs: with fewer it is only the latest
// one. For a few sequential operations the total lateness of their packets counts: the mean
// may be at most half the limit, so that their times are right within 2.5 %.
const fewPackets = 100

// strayLoss is the share of segments that may be lost in addition to the requested loss, in the network
// between machines or at the hosts' devices: a hundredth of what changes TCP's rate over a long link by 10 %.
const strayLoss = 1e-5

// Trouble says why results from the interval s (from Since) are invalid because the
// emulator did not work as requested; "" if it did.
func (s Stats) Trouble(limit time.Duration) string {
	switch n := s.Lateness.N(); {
	case n >= fewPackets:
		if late := s.Lateness.Quantile(0.99); late > limit {
			return fmt.Sprintf("the emulator sent packets %s late (99th percentile, limit %s)", words.Duration(late),
				words.Duration(limit))
		}
	case n > 0:
		if late := s.Lateness.Mean(); late > limit/2 {
			return fmt.Sprintf("the emulator sent packets %s late (mean of %d, limit %s)", words.Duration(late), n,
				words.Duration(limit/2))
		}
	}
	stray := strayLoss * float64(s.all().Sent.Segments)
	for _, c := range []struct {
		cause string
		most  float64
		text  string
	}{
		{DropMemory, 0, "the emulator dropped %d segments for want of memory"},
		{DropCarrier, stray, "the network between the machines lost about %d segments of the emulated links"},
		{DropWrite, stray, "the kernel refused %d segments that the emulator sent to hosts"},
		{DropUnread, 0, "the emulator was too slow to read %d packets"},
	} {
		if d := s.Drops[c.cause]; float64(d) > c.most {
			return fmt.Sprintf(c.text, d)
		}
	}
	return ""
}

// Lateness is how much later than due packets departed: the counts of an HDR histogram of nanoseconds,
// whose quantiles are at most a sixteenth too high; nil: no packet was counted.
type Lateness []int64

const longestLateness = time.Hour // later packets count as this late

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(longestLateness), 1) }

func (l Lateness) histogram() *hdrhistogram.Histogram {
	s := newHistogram().Export()
	s.Counts = l
	return hdrhistogram.Import(s)
}

// N is the number of packets counted.
func (l Lateness) N() int64 { return l.histogram().TotalCount() }

// Quantile returns an upper bound, within a sixteenth, of the q-quantile; 0 when
// nothing was counted.
func (l Lateness) Quantile(q float64) time.Duration {
	return time.Duration(l.histogram().ValueAtQuantile(q * 100))
}

// Mean returns the mean, within a sixteenth; 0 when nothing was counted.
func (l Lateness) Mean() time.Duration { return time.Duration(l.histogram().Mean()) }

// plus adds (sign 1) or subtracts (sign -1) other counts.
func (l Lateness) plus(o Lateness, sign int64) Lateness {
	sum := make(Lateness, max(len(l), len(o)))
	copy(sum, l)
	for i, c := range o {
		sum[i] += sign * c
	}
	return sum
}
