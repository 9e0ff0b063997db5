package fanout

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestSwarm(t *testing.T) {
	t.Parallel()
	systemtest.RunSwarm(t, systemtest.Swarm{System: System{}, Plain: true, Leaf: true})
}

// TestSpoiltEverywhere checks that there is a pause between rounds of seeders that all send bad
// bytes.
func TestSpoiltEverywhere(t *testing.T) {
	t.Parallel()
	const size = 1000
	m := newManifest(size)
	m.add(make([]byte, size))
	n := newNode(t.TempDir())
	var asked atomic.Int32
	var from []string
	for range 2 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", size-1, size))
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, strings.Repeat("x", size))
		}))
		t.Cleanup(s.Close)
		from = append(from, strings.TrimPrefix(s.URL, "http://"))
	}
	t.Cleanup(func() { n.Pause() }) // before the servers close
	must(t, n.Fetch(t.Context(), m.ref(), member.Task{Metadata: m, From: from}))
	const rounds = 3
	time.Sleep(rounds * pause)
	// Plus one round at the start.
	if n := asked.Load(); n < 2 || n > 2*(rounds+1) {
		t.Errorf("asked %d times in %v", n, rounds*pause)
	}
}

var must = systemtest.Must

// lab is a cluster of nodes, each behind its own access link.
type lab struct {
	t     *testing.T
	tb    *testbed.Testbed
	addrs []string // of the nodes
	nodes []system.Member
	rate  float64 // of each link, bit/s
}

func newLab(t *testing.T, n int, opt system.Options) *lab {
	tb, hosts := systemtest.Bed(t, testbed.Options{}, n+1)
	if m := tb.Mode(); m.Emulator == "none" {
		t.Skip(m.Why)
	}
	l := &lab{t: t, tb: tb}
	for i, node := range systemtest.Start(t, System{}, opt, hosts).Nodes() {
		l.nodes = append(l.nodes, node.(system.Member))
		l.addrs = append(l.addrs, hosts[i].Addr().String())
	}
	return l
}

// shape gives all nodes access links with this rate, in bit/s, in both directions.
func (l *lab) shape(rate float64) {
	l.t.Helper()
	l.rate = rate
	s := link.Topology{Up: map[string]link.Params{}, Down: map[string]link.Params{}}
	for _, at := range l.addrs {
		s.Up[at] = link.Params{Rate: rate, Delay: 2 * time.Millisecond}
		s.Down[at] = link.Params{Rate: rate}
	}
	must(l.t, l.tb.Shape(l.t.Context(), testbed.ShapeSpec{Topology: s}))
}

// line returns the time that one link needs for size bytes.
func (l *lab) line(size int64) time.Duration {
	return time.Duration(float64(size) * 8 / link.TCPPayloadRate(l.rate, false) * float64(time.Second))
}

// last returns the time until the last leecher has all of size bytes, which the first nodes serve.
// It is the best of three runs, because other work on the machine can only delay, or the first that
// is close to the time that the links need.
func (l *lab) last(seeders, leechers int, size int64) time.Duration {
	l.t.Helper()
	ctx := systemtest.Context(l.t)
	var from []string
	var ref system.Ref
	for _, n := range l.nodes[:seeders] {
		var err error
		ref, err = n.Publish(ctx, "line", size, systemtest.Content("line", size))
		must(l.t, err)
		a, err := n.Address(ctx)
		must(l.t, err)
		from = append(from, a)
	}
	best := time.Duration(math.MaxInt64)
	for run := 0; run < 3 && best > l.line(size)*time.Duration(leechers)/time.Duration(seeders)*21/20; run++ {
		begin := time.Now()
		there := l.nodes[seeders : seeders+leechers]
		for i, n := range there { // as in scenario disseminate, they start with different seeders
			first := i % seeders
			must(l.t, n.Fetch(ctx, ref, slices.Concat(from[first:], from[:first])))
		}
		for _, n := range there {
			for {
				f, err := n.Progress(ctx, ref)
				must(l.t, err)
				if f.Complete {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
		best = min(best, time.Since(begin))
		for _, n := range there {
			must(l.t, n.Forget(ctx, ref))
		}
	}
	for _, n := range l.nodes[:seeders] {
		must(l.t, n.Forget(ctx, ref))
	}
	return best
}

func (l *lab) wantRatio(what string, a, b time.Duration, want float64) {
	l.t.Helper()
	if got := float64(a) / float64(b); math.Abs(got/want-1) > 0.1 {
		l.t.Errorf("%s: %v and %v, ratio %.3f, want %.2f", what, a, b, got, want)
	}
}

// TestProportional checks that the time of n leechers is proportional to n with one server, and
// half as long with two servers or with links twice as fast.
func TestProportional(t *testing.T) {
	const (
		size = 2 << 20
		rate = 40e6
	)
	l := newLab(t, 5, nil)
	l.shape(rate)
	one := l.last(1, 1, size)
	l.wantRatio("one leecher and the load line", one, l.line(size), 1)
	two, four := l.last(1, 2, size), l.last(1, 4, size)
	t.Logf("1, 2, 4 leechers: %v, %v, %v; the load line of one is %v", one, two, four, l.line(size))
	l.wantRatio("2 leechers and 1", two, one, 2)
	l.wantRatio("4 leechers and 1", four, one, 4)
	l.wantRatio("2 leechers of 1 seeder and of 2", two, l.last(2, 2, size), 2)
	l.shape(2 * rate)
	quick := l.last(1, 4, size)
	t.Logf("at twice the rate: %v", quick)
	l.wantRatio("4 leechers at 40 and at 80 Mbit/s", four, quick, 2)
}
