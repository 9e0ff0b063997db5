package testbed

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Links between machines are refused where the way is longer than they ever are, and void where it changes.
func TestMeshWays(t *testing.T) {
	const ms = time.Millisecond
	way := 4 * ms // each way's round trip now
	var adopted atomic.Int32
	tb := &Testbed{}
	for i := range 3 {
		host := netip.AddrFrom4([4]byte{100, 77, 0, byte(i + 1)})
		tb.mesh.joined = append(tb.mesh.joined, member{host, string(rune('a' + i)),
			func(_ context.Context, q MeshCall) (MeshAnswer, error) {
				if q.SetTransit {
					adopted.Add(1)
				}
				return MeshAnswer{RTTs: []time.Duration{way, way, way}}, nil
			}})
	}
	shape := func(p link.Params) ShapeSpec {
		s := link.Topology{Up: map[string]link.Params{}}
		for _, m := range tb.mesh.joined[:2] {
			s.Up[m.host.String()] = p
		}
		return ShapeSpec{Topology: s}
	}
	for _, c := range []struct {
		name       string
		p          link.Params
		begin, end time.Duration
		refused    bool
		moved      bool
	}{
		{"longer than the way", link.Params{Delay: 10 * ms}, 4 * ms, 4 * ms, false, false},
		{"shorter", link.Params{Delay: 10 * ms}, 22 * ms, 22 * ms, true, false},
		{"shorter by its jitter", link.Params{Delay: 10 * ms, Jitter: 9 * ms}, 18 * ms, 18 * ms, true, false},
		{"as short as the jitter makes it", link.Params{Delay: 10 * ms, Jitter: 9 * ms}, 2 * ms, 2 * ms, false, false},
		{"another route", link.Params{Delay: 10 * ms}, 1 * ms, 19 * ms, false, true},
		{"a shorter route", link.Params{Delay: 10 * ms}, 19 * ms, 1 * ms, false, true},
		{"a little later", link.Params{Delay: 100 * ms}, 4 * ms, 8 * ms, false, false},
		{"no shape", link.Params{}, 0, 0, false, false},
	} {
		tb.shape.spec = shape(c.p)
		way = c.begin
		if err := tb.ProbeMesh(t.Context()); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		way = c.end
		adopted.Store(0)
		if got := tb.MeshMoved(t.Context()); strings.Contains(got, "changed from") != c.moved || got != "" &&
			!c.moved || adopted.Load() > 0 {
			t.Errorf("%s: %q, %d emulators took it over", c.name, got, adopted.Load())
		}
	}
}

// One late answer of a machine is not the death of its emulator, two are; and a mesh that is not
// joined cannot be changed.
func TestMeshAnswersLate(t *testing.T) {
	bed := &Testbed{opt: Options{Mesh: true}}
	wantError(t, bed.Reshape(t.Context(), ShapeSpec{}), "")
	late := 0
	bed.mesh.joined = []member{{call: func(context.Context, MeshCall) (MeshAnswer, error) {
		if late--; late >= 0 {
			return MeshAnswer{}, errors.New("no answer")
		}
		return MeshAnswer{}, nil
	}}}
	for n, died := range map[int]bool{0: false, 1: false, 2: true} {
		if late = n; (bed.EmulatorErr() != nil) != died {
			t.Errorf("%d late answers: died is %t", n, !died)
		}
	}
}
