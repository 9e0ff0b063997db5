package siasim_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siasim"
)

// visible is what the wallet and the contracts that siad lists add up to.
func visible(t *testing.T, n system.Store) *big.Int {
	t.Helper()
	c, err := n.(system.Coster).Costs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := new(big.Int).Add(c.Balance, c.Locked)
	for _, s := range c.Spent {
		sum.Add(sum, s.Amount)
	}
	return sum
}

// TestMoneyThatVanishes: what the API shows lacks exactly what the faults took,
// from the moment on at which they did.
func TestMoneyThatVanishes(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	leak, renewal, extra := siasim.SC(2_033_000), siasim.SC(69_300), siasim.SC(1_000_000)
	const day = 24 * time.Hour
	for _, test := range []struct {
		name   string
		faults siasim.Faults
		lost   *big.Int
		unused *big.Int // more in contracts than before
		what   string
	}{
		{"none", siasim.Faults{}, new(big.Int), new(big.Int), ""},
		{"leak", siasim.Faults{FormationLeak: &siasim.Loss{At: 3 * day, Amount: leak}}, leak, new(big.Int), "formation leak"},
		{"renewal", siasim.Faults{PrematureRenewal: &siasim.Loss{At: 3 * day, Amount: renewal}}, renewal, new(big.Int), "premature renewal"},
		{"unspent", siasim.Faults{Overfund: &siasim.Loss{At: 3 * day, Amount: extra}}, new(big.Int), extra, "overfunded contracts"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, siasim.Config{Faults: test.faults})
				n := attach(t, s, nil)
				total, unspent := visible(t, n), s.Truth().Unspent
				time.Sleep(3*day - time.Minute)
				if got := visible(t, n); got.Cmp(total) != 0 {
					t.Errorf("before: %v of %v", got, total)
				}
				time.Sleep(time.Hour) // a block confirms it
				if got, want := visible(t, n), new(big.Int).Sub(total, test.lost); got.Cmp(want) != 0 {
					t.Errorf("after: %v, want %v", got, want)
				}
				truth := s.Truth()
				wantAccounts(t, truth)
				if truth.Lost.Cmp(test.lost) != 0 || new(big.Int).Sub(truth.Unspent, unspent).Cmp(test.unused) < 0 {
					t.Errorf("truth %+v", truth)
				}
				if test.what == "" != (len(truth.Events) == 0) {
					t.Fatalf("events %v", truth.Events)
				}
				if test.what != "" {
					amount := new(big.Int).Add(test.lost, test.unused)
					if e := truth.Events[0]; e.What != test.what || e.At != 3*day || e.Amount.Cmp(amount) != 0 {
						t.Errorf("event %+v, amount %v", e, amount)
					}
				}
			})
		})
	}
}

// TestDeadHost: the order of what was recorded when a host was killed.
func TestDeadHost(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	synctest.Test(t, func(t *testing.T) {
		c := siasim.Config{Data: 1, Parity: 2, Hosts: 4, Contracts: 3, Sector: 256 << 10,
			Faults: siasim.Faults{DeadHost: &siasim.DeadHost{At: time.Hour, Host: 1, Fall: 375 * time.Second}}}
		s := start(t, c)
		n := attach(t, s, nil)
		ref, err := n.Put(t.Context(), "x", 4, strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.(system.Settler).Settle(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		from := time.Now()
		state := func(after time.Duration) (hosts int, redundancy float64) {
			time.Sleep(time.Until(from.Add(time.Hour + after)))
			var h struct{ Hosts []struct{} }
			get(t, s, "/hostdb/active", &h)
			var f struct{ File struct{ Redundancy float64 } }
			get(t, s, "/renter/file/"+string(ref), &f)
			if err := n.Get(t.Context(), ref, io.Discard); err != nil {
				t.Errorf("%v after the death: %v", after, err)
			}
			return len(h.Hosts), f.File.Redundancy
		}
		for _, want := range []struct {
			after      time.Duration
			hosts      int
			redundancy float64
		}{{-time.Minute, 4, 3}, {time.Minute, 4, 3}, {4 * time.Minute, 3, 3}, {8 * time.Minute, 3, 2}, {15 * time.Minute, 3, 2}, {24 * 24 * time.Hour, 3, 2}} {
			if hosts, r := state(want.after); hosts != want.hosts || r != want.redundancy {
				t.Errorf("%v after the death: %d hosts, redundancy %g; want %d, %g", want.after, hosts, r, want.hosts, want.redundancy)
			}
		}
		truth := s.Truth()
		if truth.Below != 1 || truth.Done != 0 || truth.Contracts != 3 {
			t.Errorf("truth %+v", truth)
		}
		wantAccounts(t, truth)
	})
}

// TestOvershoot: the redundancy of the study, 5.3 in the mean and up to 11.3.
func TestOvershoot(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, siasim.Config{Up: siasim.Bandwidth{Start: 1e12}, ContractFunds: siasim.SC(100_000),
			Faults: siasim.Faults{Overshoot: &siasim.Overshoot{Mean: 5.3, Max: 11.3}}})
		n := attach(t, s, nil)
		for i := range 1000 {
			if _, err := n.Put(t.Context(), fmt.Sprint(i), 1, strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		truth := s.Truth()
		if truth.Done != 1000 || truth.RedundancyMean < 5 || truth.RedundancyMean > 5.6 || truth.RedundancyMax < 10.5 || truth.RedundancyMax > 11.3 || truth.RedundancyMin < 3 {
			t.Errorf("truth %+v", truth)
		}
		// 40 MiB a redundancy: about 213 MiB a file.
		if each := float64(truth.Absolute) / 1000 / (40 << 20); each < truth.RedundancyMean*0.99 || each > truth.RedundancyMean*1.01 {
			t.Errorf("%g × 40 MiB a file, redundancy %g", each, truth.RedundancyMean)
		}
		wantAccounts(t, truth)
	})
}

// TestBadDaemons: what a daemon in trouble answers, and that it gets over it.
func TestBadDaemons(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	hour := []siasim.Window{{From: time.Hour, For: time.Hour}}
	list := func(n system.Store) error {
		_, err := n.(system.Lister).List(context.Background())
		return err
	}
	costs := func(n system.Store) error {
		_, err := n.(system.Coster).Costs(context.Background())
		return err
	}
	put := func(name string) func(system.Store) error {
		return func(n system.Store) error {
			_, err := n.Put(context.Background(), name, 1, strings.NewReader("x"))
			return err
		}
	}
	for _, test := range []struct {
		name   string
		faults siasim.Faults
		do     func(n system.Store) error
		says   string
		is     error
	}{
		{"html", siasim.Faults{HTML: hour}, list, "not what it should be", nil},
		{"underflow", siasim.Faults{Underflow: hour}, list, "is no number of bytes", nil},
		{"down", siasim.Faults{Down: hour}, list, "", syscall.ECONNREFUSED},
		{"full", siasim.Faults{Full: hour}, put("b"), "not enough contracts", system.ErrTooFew},
		{"swallow", siasim.Faults{Swallow: hour}, put("b"), "nothing was stored", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, siasim.Config{Faults: test.faults})
				n := attach(t, s, nil)
				if err := errors.Join(put("a")(n), list(n), costs(n)); err != nil {
					t.Fatalf("before: %v", err)
				}
				time.Sleep(90 * time.Minute)
				if err := test.do(n); err == nil || !strings.Contains(err.Error(), test.says) || test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("during: %v", err)
				}
				time.Sleep(time.Hour)
				if err := errors.Join(put("c")(n), list(n), costs(n)); err != nil {
					t.Errorf("after: %v", err)
				}
				wantAccounts(t, s.Truth())
			})
		})
	}
}

// TestStall: an upload takes as much longer as the stall lasts.
func TestStall(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, siasim.Config{Data: 1, Parity: 1, Up: siasim.Bandwidth{Start: 1 << 20},
			Faults: siasim.Faults{Stall: []siasim.Window{{From: time.Minute, For: time.Hour}}}})
		n := attach(t, s, nil)
		time.Sleep(59 * time.Second)
		from := time.Now()
		if _, err := n.Put(t.Context(), "x", 8<<20, io.LimitReader(zeros{}, 8<<20)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(from); took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("an upload of 8 s with a stall of an hour took %v", took)
		}
	})
}

// TestWalletRunsDry: without money uploads are answered 204 and stored nowhere,
// what was accepted stays where it is, and more money mends both.
func TestWalletRunsDry(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	synctest.Test(t, func(t *testing.T) {
		// A thousandth of a siacoin for a sector, ten sectors for a contract, and
		// nothing left to form another one with.
		s := start(t, siasim.Config{
			Data: 1, Parity: 2, Hosts: 3, Contracts: 3, Wallet: siasim.SC(40), ContractFunds: siasim.SC(10), ContractFees: siasim.SC(2),
			Prices: siasim.Prices{Storage: new(big.Int), Upload: new(big.Int).Div(siasim.SC(1), big.NewInt(4<<20))},
		})
		n := attach(t, s, nil)
		put := func(name string, sectors int64) error {
			_, err := n.Put(t.Context(), name, sectors<<22, io.LimitReader(zeros{}, sectors<<22))
			return err
		}
		if err := put("all but three", 9); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := put("two more than there are", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := put("one", 1); err == nil || !strings.Contains(err.Error(), "nothing was stored") {
			t.Errorf("without money: %v", err)
		}
		truth := s.Truth()
		wantAccounts(t, truth)
		if truth.Sent != 30<<22 || truth.Files != 2 {
			t.Errorf("truth %+v", truth)
		}
		s.Deposit(siasim.SC(1000))
		time.Sleep(time.Hour)
		if err := put("one", 1); err != nil {
			t.Errorf("with money: %v", err)
		}
		wantAccounts(t, s.Truth())
	})
}

// TestLatency: the API answers as late as it is told to.
func TestLatency(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, siasim.Config{Up: siasim.Bandwidth{Start: 1e12},
			LatencyOf: map[string]siasim.Latency{"/renter/contracts": {Base: time.Second, PerFile: time.Millisecond, PerByte: 1.0 / (120 << 20), PerSecond: 1e-3}}})
		n := attach(t, s, nil)
		ask := func() time.Duration {
			var v any
			from := time.Now()
			get(t, s, "/renter/contracts", &v)
			return time.Since(from)
		}
		for i := range 10 {
			if _, err := n.Put(t.Context(), fmt.Sprint(i), 1, strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Until(s.Began().Add(1000 * time.Second)))
		// 1 s + 10 ms + 10 s of bytes + 1 s of age.
		if took := ask(); took < 12*time.Second || took > 12*time.Second+100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// TestUpgrade: the daemon goes down and comes back as another version.
func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, siasim.Config{Faults: siasim.Faults{
			Upgrade: &siasim.Upgrade{At: time.Hour, Version: "1.6.0"}, Down: []siasim.Window{{From: time.Hour, For: time.Minute}},
		}})
		var v struct{ Version string }
		if get(t, s, "/daemon/version", &v); v.Version != "1.5.9" {
			t.Errorf("version %q", v.Version)
		}
		time.Sleep(2 * time.Hour)
		if get(t, s, "/daemon/version", &v); v.Version != "1.6.0" {
			t.Errorf("version %q", v.Version)
		}
	})
}
