package chain

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestAChainIsMadeOnce(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "not", "there", "yet")
	s := Spec{Blocks: 30, Transactions: 1, Form: V2, Seed: 1}
	var told [][2]int
	one, err := Get(t.Context(), cache, s, func(done, total int) { told = append(told, [2]int{done, total}) })
	must(t, err)
	if n := len(told); n == 0 || told[n-1] != [2]int{30, 30} {
		t.Errorf("progress %v", told)
	}
	two, err := Get(t.Context(), cache, s, func(int, int) { t.Error("it is made again") })
	must(t, err)
	if !one.Built || two.Built || one.Dir != two.Dir || one.Manifest != two.Manifest {
		t.Errorf("got\n%+v\n%+v", one, two)
	}
	again, err := Open(one.Dir)
	if err != nil || again.Manifest != one.Manifest {
		t.Errorf("opened: %+v, %v", again, err)
	}
}

func TestABuildThatIsEndedLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := Get(ctx, cache, Spec{Blocks: MaxBlocks, Form: V2}, func(done, _ int) { cancel(enough) })
	if !errors.Is(err, enough) {
		t.Fatalf("got %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
