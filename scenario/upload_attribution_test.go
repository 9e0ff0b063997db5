package scenario

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// Each kind of phase comes six times, as often at each place of a round, and
// follows each other one as often; the objects are those that the data has.
func TestDesignIsBalanced(t *testing.T) {
	for seed := range uint64(20) {
		d := designed(seed, 6000, 600_000, 5)
		place, after := map[[2]any]int{}, map[[2]string]int{}
		files, bytes := 0, int64(0)
		for i, p := range d.phases {
			if p.probed-p.to != probePuts {
				t.Errorf("phase %d has %d probes", i, p.probed-p.to)
			}
			if i == 0 {
				continue
			}
			place[[2]any{p.what, (i - 1) % 3}]++
			if (i-1)%3 > 0 {
				after[[2]string{d.phases[i-1].what, p.what}]++
			}
			for object := p.from; object < p.to; object++ {
				if p.what == "bytes" {
					bytes += d.Size(object)
				} else if d.Size(object) != 1 {
					t.Fatalf("a file of %d bytes", d.Size(object))
				}
			}
			if p.what == "files" {
				files += p.to - p.from
			}
		}
		for k, n := range place {
			if n != 2 || len(place) != 9 {
				t.Errorf("seed %d: %v comes %d times", seed, k, n)
			}
		}
		for k, n := range after {
			if n != 2 || len(after) != 6 {
				t.Errorf("seed %d: %v comes %d times", seed, k, n)
			}
		}
		if files != 6000 || bytes != 600_000 || d.Size(d.total-1) != 1 {
			t.Errorf("seed %d: %d files, %d bytes", seed, files, bytes)
		}
	}
}

// growing is a node that becomes slower: by so much for each file, for each
// megabyte, and for each hour.
type growing struct {
	*mem.Node
	file, megabyte, hour time.Duration
	begun                time.Time
	limit                context.CancelCauseFunc // called after so many puts
	puts, at             int
}

func (g *growing) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	h, err := g.Stats(ctx)
	if err != nil {
		return "", err
	}
	slow := float64(h.Objects)*float64(g.file) + float64(h.Absolute)/1e6*float64(g.megabyte) + time.Since(g.begun).Hours()*float64(g.hour)
	time.Sleep(10*time.Millisecond + time.Duration(slow))
	if g.puts++; g.puts == g.at {
		g.limit(context.Canceled)
	}
	return g.Node.Put(ctx, name, size, r)
}

// What makes a system slower is what its probes grow by, in phases of one kind
// and in no others. A trial that is cut off goes on where it was.
func TestUploadAttribution(t *testing.T) {
	for what, g := range map[string]growing{
		"files": {file: 100 * time.Microsecond}, "bytes": {megabyte: 100 * time.Millisecond}, "idle": {hour: time.Second},
	} {
		virtual(t, func(t *testing.T) {
			cell := uploadCell(600, 10_000, func(u *experiment.ResolvedUpload) {
				u.Attribution, u.Poll = true, experiment.Duration(time.Hour)
			})
			b := newUploadBench(t, system.Options{"a": "1s"}, cell)
			g.Node, g.begun, g.at = b.mem, time.Now(), 333
			b.node = &g
			ctx, cancel := context.WithCancelCause(t.Context())
			g.limit = cancel
			if _, err := b.session(ctx); err == nil {
				t.Fatal("it was not cut off")
			}
			y := b.must()
			if err := b.holds(); err != nil {
				t.Error(err)
			}
			probes := slices.DeleteFunc(y.load.Details, func(d record.Detail) bool { return d.Kind != record.DetailProbe })
			if len(probes) != 19 {
				t.Fatalf("probes %v", probes)
			}
			sum := map[string]float64{}
			for i, d := range probes {
				kind := strings.Fields(d.Name)[1]
				if d.Kind != record.DetailProbe {
					t.Errorf("detail %+v", d)
				}
				if i > 0 {
					sum[kind] += d.Value - y.load.Details[i-1].Value
				}
			}
			total := sum["files"] + sum["bytes"] + sum["idle"]
			// Probes are files, and putting takes time: a little is the others'.
			if total <= 0 || sum[what] < 0.75*total || math.IsNaN(total) {
				t.Errorf("slower by %s: probes grew by %v", what, sum)
			}
			events := map[string]int{}
			for _, e := range b.ledger.events {
				if e.Kind == "phase" {
					events[e.What]++
				}
				if strings.HasPrefix(e.What, attributionEvent) {
					var n int
					var from, to, probed time.Duration
					_, last, _ := strings.Cut(e.Detail, "; probed")
					_, err1 := fmt.Sscanf(e.Detail, phaseText, &n, &from, &to)
					if _, err := fmt.Sscanf("; probed"+last, probedText, &probed); err != nil || err1 != nil || probed < to {
						t.Errorf("%q does not tell when its probe was over", e.Detail)
					}
				}
			}
			for _, kind := range []string{"files", "bytes", "idle"} {
				if events[attributionEvent+kind] != 6 {
					t.Errorf("events %v", events)
				}
			}
		})
	}
}

// The plan says of the design what it is.
func TestPlanTellsTheDesign(t *testing.T) {
	const src = "scenario: upload\nsystems: [mem]\ndata: {objects: %d, size: %dB}\nupload: {attribution: true}\n"
	for _, c := range [][2]int64{{6000, 1000}, {1, 1}, {7, 123_456}, {100_000, 3}} {
		e, err := experiment.Parse("test.yaml", fmt.Appendf(nil, src, c[0], c[1]), nil, experiment.Catalog{{Name: "mem", Modes: []string{"start"}}})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := e.Plan()
		if err != nil {
			t.Fatal(err)
		}
		d := designed(1, c[0], c[0]*c[1], plan.Cells[0].Upload.Concurrency)
		sum := int64(0)
		for i := range d.total {
			sum += d.Size(i)
		}
		// Bytes of an object round up to one.
		if got := int64(plan.Cells[0].Estimate.Bytes); got > sum || got < sum-6*int64(len(d.large)) {
			t.Errorf("%v: estimated %d bytes, the design has %d", c, got, sum)
		}
		var text strings.Builder
		if err := plan.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("6 rounds of three phases: %d file", d.phases[1].to-d.phases[1].from); d.phases[1].what == "files" && !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}
