package chain

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

func TestAChainIsMadeOnce(t *testing.T) {
	cache := Cache{filepath.Join(t.TempDir(), "not", "there", "yet")}
	s := Spec{Blocks: 30, Transactions: 1, Form: V2, Seed: 1}
	var told [][2]int
	one, err := cache.Chain(t.Context(), s, func(done, total int) { told = append(told, [2]int{done, total}) })
	if err != nil {
		t.Fatal(err)
	}
	if n := len(told); n == 0 || told[n-1] != [2]int{30, 30} {
		t.Errorf("progress %v", told)
	}
	two, err := cache.Chain(t.Context(), s, func(int, int) { t.Error("it is made again") })
	if err != nil {
		t.Fatal(err)
	}
	if !one.Built || two.Built || two.Note != "" || one.Dir != two.Dir || one.Manifest != two.Manifest {
		t.Errorf("got\n%+v\n%+v", one, two)
	}
	again, err := Open(one.Dir)
	if err != nil || again.Manifest != one.Manifest {
		t.Errorf("opened: %+v, %v", again, err)
	}
}

func TestABuildThatIsEndedLeavesNothing(t *testing.T) {
	cache := Cache{t.TempDir()}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := cache.Chain(ctx, Spec{Blocks: MaxBlocks, Form: V2}, func(done, _ int) { cancel(enough) })
	if !errors.Is(err, enough) {
		t.Fatalf("got %v", err)
	}
	if all, err := cache.kept().List(); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// killed is the environment variable that makes the test's binary a builder which is
// to be killed.
const killed = "PLIMSOLL_TEST_CHAIN_CACHE"

func TestABuilderThatIsKilled(t *testing.T) {
	s := Spec{Blocks: MaxBlocks, Form: V2, Seed: 5}
	if dir := os.Getenv(killed); dir != "" {
		Cache{dir}.Chain(t.Context(), s, func(int, int) { os.Stdout.WriteString("building\n") })
		t.Fatal("it was not killed")
	}
	cache := Cache{t.TempDir()}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestABuilderThatIsKilled$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), killed+"="+cache.Dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 64)); err != nil {
		t.Error(err)
	}
	cmd.Process.Kill()
	cmd.Wait()

	all, err := cache.kept().List()
	if err != nil || len(all) != 1 || all[0].State != chaincache.Unfinished {
		t.Fatalf("left: %+v, %v", all, err)
	}
	// The next one begins anew; so long a chain is not waited for.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = cache.Chain(ctx, s, func(done, _ int) {
		if done >= s.Blocks/2 {
			t.Errorf("%d blocks were there", done)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if all, _ := cache.kept().List(); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
}
