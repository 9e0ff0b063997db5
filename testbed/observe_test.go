package testbed

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/plimsoll-project/plimsoll/record"
)

// startBurner starts a process that keeps one thread busy and holds memory,
// itself or in a child, until the returned function asks it how much CPU it
// took.
func startBurner(t *testing.T, h *host, name string, bytes int, child bool) (*process, func() float64) {
	t.Helper()
	in, feed := io.Pipe()
	said, out := io.Pipe()
	c := fakeCommand(t, name, "burn", strconv.Itoa(bytes))
	if child {
		c.Args = append(c.Args, "child")
	}
	c.Stdin, c.Stdout = in, out
	p := start(t, h, c)
	return p, func() (seconds float64) {
		_ = feed.Close()
		_, err := fmt.Fscan(said, &seconds)
		must(t, err)
		<-p.Done()
		return seconds
	}
}

func TestUsageOfAKnownBurner(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector uses memory and CPU of its own")
	}
	_, h := plainHost(t)
	for _, child := range []bool{false, true} {
		p, end := startBurner(t, h, fmt.Sprint("burn-", child), 64<<20, child)
		holding := "holding\n"
		if child {
			holding += holding
		}
		eventually(t, "it holds its memory", logs(t, p, holding))
		eventually(t, "it burns", func() bool { return p.sample(scan()).CPU > 0.2 })
		s := p.sample(scan())
		if child { // the parent holds as much as the child
			s.RSS /= 2
		}
		if s.RSS < 62<<20 || s.RSS > 100<<20 { // the kernel adds it up in batches
			t.Errorf("child %v: RSS %.0f MiB of 64 MiB", child, s.RSS/(1<<20))
		}
		before := p.sample(scan()).CPU
		said := end()
		after := p.sample(scan())
		if after.CPU < before {
			t.Errorf("child %v: CPU fell from %.3f to %.3f", child, before, after.CPU)
		}
		// The parent's own start-up comes on top of what its child says.
		if after.CPU < 0.95*said-0.02 || after.CPU > 1.05*said+0.15 {
			t.Errorf("child %v: CPU %.3f s, it says %.3f s", child, after.CPU, said)
		}
		if after.RSS != 0 {
			t.Errorf("child %v: ended, yet %+v", child, after)
		}
	}
}

func TestWritesAreCounted(t *testing.T) {
	_, h := plainHost(t)
	file := t.TempDir() + "/data"
	p := start(t, h, Command{Name: "dd", Args: []string{"sh", "-c", "dd if=/dev/zero of=" + file +
		" bs=1M count=16 conv=fsync 2>/dev/null; echo written; exec sleep 100"}})
	eventually(t, "it has written", logs(t, p, "written"))
	if s := p.sample(scan()); s.WriteBytes < 16<<20 && s.WriteBytes != 0 { // 0: a file system in memory
		t.Errorf("written %.0f bytes of %d", s.WriteBytes, 16<<20)
	}
}

func TestHostTraffic(t *testing.T) {
	needNamespaces(t)
	_, a, b := twoHosts(t, Options{})
	_, addr := startEcho(t, a)
	rx, tx := a.Traffic()
	for range 4 {
		echoes(t, dial(t, b, addr)) // 256 KiB each way
	}
	received, sent := a.Traffic()
	for _, d := range []float64{received - rx, sent - tx} {
		if d < 1<<20 || d > 1.2*(1<<20) {
			t.Errorf("%.0f bytes of %d", d, 1<<20)
		}
	}
}

// silent is a host on a machine that does not answer.
type silent struct {
	Remote
	asked, answer chan bool
}

func (s silent) Poll() []record.Sample {
	s.asked <- true
	<-s.answer
	return nil
}

// Processes here are stopped while machines elsewhere, which are asked at once, are silent.
func TestSilentMachineDelaysNoStop(t *testing.T) {
	tb, h := plainHost(t)
	p := start(t, h, Command{Name: "sleep", Args: []string{"sleep", "600"}})
	asked, answer := make(chan bool), make(chan bool)
	tb.remote = []Remote{silent{nil, asked, answer}, silent{nil, asked, answer}}
	polled, stopped := make(chan bool), make(chan error, 1)
	go func() {
		tb.Poll(time.Now())
		close(polled)
	}()
	<-asked
	<-asked
	go func() { stopped <- p.Stop(context.Background()) }()
	select {
	case err := <-stopped:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Error("it is not stopped")
	}
	close(answer)
	<-polled
	tb.remote = nil
}

func TestObserve(t *testing.T) {
	tb, h := plainHost(t)
	_, end := startBurner(t, h, "burn", 0, false)
	const every = 20 * time.Millisecond
	epoch := time.Now()
	var polls [][]record.Sample
	several := make(chan struct{})
	stop := tb.Observe(epoch, every, func(s []record.Sample) {
		if polls = append(polls, s); len(polls) == 10 {
			close(several)
		}
	})
	<-several
	stop()
	stop()
	n := len(polls)
	time.Sleep(3 * every)
	if len(polls) != n {
		t.Error("polled after stop")
	}
	end()
	if took := time.Since(epoch); n > int(took/every)+2 {
		t.Errorf("%d polls in %s", n, took)
	}
	last := map[string]record.Sample{}
	for i, poll := range polls {
		got := byProcess(poll)
		for _, s := range poll {
			if s.Start < 0 || s.End < s.Start {
				t.Errorf("poll from %s to %s", s.Start, s.End)
			}
			if l, ok := last[s.Process]; ok && (s.CPU < l.CPU || s.Start < l.End) {
				t.Errorf("%s went back: %+v after %+v", s.Process, s, l)
			}
		}
		for name, role := range map[string]string{"burn": "system", BoxSample: RoleBox, OthersSample: RoleBox,
			SelfSample: RoleEngine} {
			if got[name].Role != role {
				t.Errorf("poll %d: sample of %s: %+v", i, name, got[name])
			}
		}
		last = got
	}
	if last[BoxSample].RSS < 1<<20 {
		t.Errorf("memory in use: %.0f", last[BoxSample].RSS)
	}
}

// What we use is not counted as others'; see TestBusy for what is.
func TestOursAreNoOthers(t *testing.T) {
	tb, h := plainHost(t)
	p, end := startBurner(t, h, "burn", 0, false)
	own, before := p.sample(scan()).CPU, byProcess(tb.Poll(time.Now()))
	time.Sleep(600 * time.Millisecond)
	after, ours := byProcess(tb.Poll(time.Now())), p.sample(scan()).CPU-own
	end()
	busy, others := after[BoxSample].CPU-before[BoxSample].CPU, after[OthersSample].CPU-before[OthersSample].CPU
	if ours < 0.2 {
		t.Skipf("too busy here: our burner got %.2f s of CPU", ours)
	}
	if others > busy-ours/2 { // the two are not read at the same instant
		t.Errorf("busy %.2f s, ours %.2f s, others %.2f s: ours is counted as others'", busy, ours, others)
	}
}

func TestCounter(t *testing.T) {
	var c counter
	for _, step := range []struct{ raw, want float64 }{
		{1, 1}, {2, 2}, {1.99, 2}, // rounding
		{2.5, 2.5}, {0.5, 2.5}, {1, 3}, // one went, unaccounted for
		{math.NaN(), math.NaN()}, {1.5, 3.5},
	} {
		if got := c.update(step.raw, cpuRounding); math.Abs(got-step.want) > 1e-9 ||
			math.IsNaN(got) != math.IsNaN(step.want) {
			t.Errorf("%v: got %v, want %v", step.raw, got, step.want)
		}
	}
}

func TestTraffic(t *testing.T) {
	device := func(flags net.Flags, rx, tx, received, sent uint64) netlink.Link {
		return &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Flags: flags, Statistics: &netlink.LinkStatistics{
			RxBytes: rx, TxBytes: tx, RxPackets: received, TxPackets: sent}}}
	}
	rx, tx := traffic([]netlink.Link{device(net.FlagLoopback, 999, 999, 9, 9), device(0, 100, 200, 1, 2),
		device(0, 50, 66, 2, 1)})
	if rx != 86+22 || tx != 172+52 { // without Ethernet's headers of 14 bytes
		t.Errorf("got %v, %v", rx, tx)
	}
}

// The schedule is absolute: a poll that takes too long makes the next ones drop
// out but one, it does not shift them.
func TestObserveKeepsToItsSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tb Testbed
		var starts []time.Duration
		stop := tb.Observe(time.Now(), time.Second, func(s []record.Sample) {
			starts = append(starts, s[0].Start)
			switch len(starts) {
			case 2:
				time.Sleep(300 * time.Millisecond)
			case 3:
				time.Sleep(2500 * time.Millisecond)
			}
		})
		time.Sleep(7500 * time.Millisecond)
		stop()
		want := []time.Duration{0, 1000, 2000, 4500, 5000, 6000, 7000, 7500} // the one missed comes at once
		for i := range want {
			want[i] *= time.Millisecond
		}
		if !slices.Equal(starts, want) {
			t.Errorf("polled at %v, want %v", starts, want)
		}
	})
}
