package chain

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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

func TestTwoBuildersMakeItOnce(t *testing.T) {
	cache := Cache{t.TempDir()}
	s := small(V2)
	built := make(chan bool, 4)
	var all sync.WaitGroup
	for range cap(built) {
		all.Go(func() {
			c, err := cache.Chain(t.Context(), s, nil)
			if err != nil {
				t.Error(err)
				return
			}
			built <- c.Built
		})
	}
	all.Wait()
	close(built)
	n := 0
	for b := range built {
		if b {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of them made it", n)
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

func TestADamagedChainIsMadeAgainAndKept(t *testing.T) {
	for what, damage := range map[string]func(c *Chain) error{
		"truncated store": func(c *Chain) error { return os.Truncate(c.store(), c.Store.Bytes/2) },
		"flipped byte": func(c *Chain) error {
			f, err := os.OpenFile(c.store(), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			b := []byte{0}
			f.ReadAt(b, c.Store.Bytes/2)
			_, err = f.WriteAt([]byte{b[0] ^ 0xff}, c.Store.Bytes/2)
			return err
		},
		"no store":         func(c *Chain) error { return os.Remove(c.store()) },
		"no manifest":      func(c *Chain) error { return os.Remove(filepath.Join(c.Dir, manifestFile)) },
		"broken manifest":  func(c *Chain) error { return os.Truncate(filepath.Join(c.Dir, manifestFile), 40) },
		"foreign manifest": func(c *Chain) error { return rewrite(c, func(m *Manifest) { m.Spec.Seed++ }) },
	} {
		t.Run(what, func(t *testing.T) {
			cache := Cache{t.TempDir()}
			s := Spec{Blocks: 20, Transactions: 1, Form: V1, Seed: 1}
			one, err := cache.Chain(t.Context(), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second damaged one takes the place of the first
				time.Sleep(10 * time.Millisecond) // for a file time of its own
				if err := damage(one); err != nil {
					t.Fatal(err)
				}
				two, err := cache.Chain(t.Context(), s, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !two.Built || !strings.Contains(two.Note, "damaged") || !strings.Contains(two.Note, two.Dir+".damaged") {
					t.Errorf("built %t, note %q", two.Built, two.Note)
				}
				if two.Tip != one.Tip {
					t.Errorf("tip %v, was %v", two.Tip, one.Tip)
				}
				if _, err := os.Stat(two.Dir + ".damaged"); err != nil {
					t.Error(err)
				}
			}
			if all, _ := cache.kept().List(); len(all) != 2 {
				t.Errorf("%d entries", len(all))
			}
		})
	}
}

// rewrite changes a chain's manifest.
func rewrite(c *Chain, change func(*Manifest)) error {
	m := c.Manifest
	change(&m)
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, manifestFile), b, 0o644)
}

// A store that was copied has another time, and the same content.
func TestACopiedChainIsRead(t *testing.T) {
	cache := Cache{t.TempDir()}
	s := Spec{Blocks: 3, Form: V2, Seed: 1}
	c, err := cache.Chain(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(c.store(), time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if c, err = cache.Chain(t.Context(), s, nil); err != nil || c.Built {
		t.Errorf("built %v, %v", c, err)
	}
}

func TestAChainOfAnotherVersionIsMadeAgain(t *testing.T) {
	cache := Cache{t.TempDir()}
	s := Spec{Blocks: 3, Transactions: 1, Form: V2, Seed: 1}
	c, err := cache.Chain(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	was := Libraries()
	was.Coreutils = "v0.1.0"
	if err := rewrite(c, func(m *Manifest) { m.Versions = was }); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(cache.Dir, key(s, was))
	if err := os.Rename(c.Dir, old); err != nil {
		t.Fatal(err)
	}
	if c, err = cache.Chain(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	if !c.Built || !strings.Contains(c.Note, "coreutils v0.1.0 instead of "+Libraries().Coreutils) || !strings.Contains(c.Note, old) {
		t.Errorf("built %t, note %q", c.Built, c.Note)
	}
	if c, err = cache.Chain(t.Context(), s, nil); err != nil || c.Built || c.Note != "" {
		t.Errorf("the next time: %+v, %v", c, err)
	}
}
