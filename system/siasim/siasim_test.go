package siasim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/renterd"
	"github.com/plimsoll-project/plimsoll/system/siad"
	"github.com/plimsoll-project/plimsoll/system/siasim"
)

const variable = "PLIMSOLL_TEST_SIASIM"

// attach attaches siad's adapter to a simulator for writing.
func attach(t *testing.T, s *siasim.Sim, more system.Options) system.Store {
	t.Helper()
	opt := system.Options{"url": s.SiadURL(), "password": variable}
	for k, v := range more {
		opt[k] = v
	}
	c, err := siad.System{}.Attach(t.Context(), system.Deployment{Client: s.Host(), Dir: "none", Options: opt, Write: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c.Nodes()[0].(system.Store)
}

// start makes a simulator that ends with the test.
func start(t *testing.T, c siasim.Config) *siasim.Sim {
	s := siasim.New(c)
	t.Cleanup(s.Close)
	return s
}

// wantAccounts holds the model to its own accounts.
func wantAccounts(t *testing.T, truth siasim.Truth) {
	t.Helper()
	if m := truth.Missing(); m.Sign() != 0 {
		t.Errorf("at %v: %v hastings are missing", truth.At, m)
	}
	if truth.Parts().Cmp(truth.Total) != 0 {
		t.Errorf("at %v: contracts cost %v, their parts are %v", truth.At, truth.Total, truth.Parts())
	}
}

// TestSiadsAdapterLivesOnIt: what the adapter does for a real siad it does here,
// in virtual time.
func TestSiadsAdapterLivesOnIt(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, siasim.Config{Data: 1, Parity: 2, Sector: 256 << 10, Up: siasim.Bandwidth{Start: 1 << 20}})
		n := attach(t, s, nil)
		content := bytes.Repeat([]byte("plimsoll"), 100_000) // 4 chunks
		from := time.Now()
		ref, err := n.Put(t.Context(), "a name/with a slash", int64(len(content)), bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		accepted := time.Since(from)
		var got bytes.Buffer
		if err := n.Get(t.Context(), ref, &got); err != nil || !bytes.Equal(got.Bytes(), content) {
			t.Errorf("get: %d bytes, %v", got.Len(), err)
		}
		if err := n.(system.Settler).Settle(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		// 4 sectors of a quarter MiB at 1 MiB/s, then 8 more.
		if durable := time.Since(from); accepted < time.Second || durable < 3*accepted*9/10 || durable > 4*accepted {
			t.Errorf("accepted after %v, durable after %v", accepted, durable)
		}
		got.Reset()
		if err := n.(system.Ranger).GetRange(t.Context(), ref, 7, 9, &got); err != nil || got.String() != string(content[7:16]) {
			t.Errorf("range: %q, %v", got.String(), err)
		}
		objects, err := n.(system.Lister).List(t.Context())
		if err != nil || len(objects) != 1 || objects[0].Ref != ref || objects[0].Size != int64(len(content)) {
			t.Errorf("list: %v, %v", objects, err)
		}
		if h, err := n.(system.Stats).Stats(t.Context()); err != nil || h.Objects != 1 || h.Absolute != 12*256<<10 {
			t.Errorf("stats: %+v, %v", h, err)
		}
		costs, err := n.(system.Coster).Costs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		truth := s.Truth()
		wantAccounts(t, truth)
		if costs.Balance.Cmp(truth.Wallet) != 0 || costs.Locked.Cmp(truth.Unspent) != 0 || len(costs.Prices) != 4 {
			t.Errorf("costs %+v, truth %+v", costs, truth)
		}
		for _, spent := range costs.Spent {
			if want, ok := map[string]string{"upload": truth.Upload.String(), "storage": truth.Storage.String(), "download": truth.Download.String(), "fees": truth.Fees.String()}[spent.Purpose]; ok && want != spent.Amount.String() {
				t.Errorf("spent for %s: %v, truth %s", spent.Purpose, spent.Amount, want)
			}
		}
		if truth.Upload.Sign() <= 0 || truth.Download.Sign() <= 0 {
			t.Error("uploads or downloads cost nothing")
		}
		if err := n.(system.Deleter).Delete(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		if _, err := n.(system.Stater).Stat(t.Context(), ref); err == nil {
			t.Error("it is there after it was deleted")
		}
		wantAccounts(t, s.Truth())
	})
}

// TestWeeksInSeconds: 25 days of polls pass in seconds.
func TestWeeksInSeconds(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	synctest.Test(t, func(t *testing.T) {
		const files, polls = 300, 25 * 48
		s := start(t, siasim.Config{Up: siasim.Bandwidth{Start: 5e6, Decay: 10 * 24 * time.Hour}})
		n := attach(t, s, nil)
		for i := range polls {
			if i%(polls/files) == 0 {
				name := fmt.Sprintf("file %d", i)
				if _, err := n.Put(t.Context(), name, 1, strings.NewReader("x")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := n.(system.Lister).List(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := n.(system.Coster).Costs(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Minute)
		}
		truth := s.Truth()
		wantAccounts(t, truth)
		if truth.Files != files || truth.Done != files || truth.Absolute != files*30*4<<20 || truth.At < 25*24*time.Hour {
			t.Errorf("truth %+v", truth)
		}
	})
}

// TestAccountsHold: whatever is done in whatever order, no hasting is lost but
// those that faults lose.
func TestAccountsHold(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			c := siasim.Config{
				Seed: seed, Sector: 256 << 10, Data: 2, Parity: 3, Hosts: 9, Contracts: 6, Period: 60, RenewWindow: 20, HostStorage: 60 << 18,
				Wallet: siasim.SC(3_000), ContractFunds: siasim.SC(2), ContractFees: siasim.SC(1), Up: siasim.Bandwidth{Start: 1e5},
				// Few files empty a contract.
				Prices: siasim.Prices{Storage: siasim.SC(0), Upload: siasim.Defaults().Prices.Upload},
				Faults: siasim.Faults{
					FormationLeak:    &siasim.Loss{At: time.Hour, Amount: siasim.SC(100)},
					PrematureRenewal: &siasim.Loss{At: 2 * time.Hour, Amount: siasim.SC(7)},
					Overfund:         &siasim.Loss{At: 3 * time.Hour, Amount: siasim.SC(300)},
					DeadHost:         &siasim.DeadHost{At: 4 * time.Hour, Host: 2, Fall: time.Hour},
					Stall:            []siasim.Window{{From: 5 * time.Hour, For: time.Hour}},
				},
			}
			s := start(t, c)
			n := attach(t, s, nil)
			var refs []system.Ref
			before := s.Truth()
			for i := range 200 {
				switch k := r.IntN(10); {
				case k < 4:
					size := r.Int64N(2 << 20)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
					ref, err := n.Put(ctx, fmt.Sprint(i), size, io.LimitReader(zeros{}, size))
					if err == nil {
						refs = append(refs, ref)
					}
					cancel()
				case k < 5 && len(refs) > 0:
					_ = n.Get(t.Context(), refs[r.IntN(len(refs))], io.Discard)
				case k < 6 && len(refs) > 0:
					j := r.IntN(len(refs))
					_ = n.(system.Deleter).Delete(t.Context(), refs[j])
					refs = append(refs[:j], refs[j+1:]...)
				case k < 7:
					s.Deposit(siasim.SC(r.Int64N(50)))
				default:
					time.Sleep(time.Duration(r.Int64N(int64(40 * time.Minute))))
				}
				now := s.Truth()
				wantAccounts(t, now)
				if now.Sent < before.Sent || now.Fees.Cmp(before.Fees) < 0 || now.Upload.Cmp(before.Upload) < 0 || now.Wallet.Sign() < 0 || now.Unspent.Sign() < 0 {
					t.Fatalf("went back from %+v to %+v", before, now)
				}
				before = now
			}
			if before.Lost.Sign() == 0 || before.Sent == 0 {
				t.Errorf("nothing happened: %+v", before)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// get asks siad's API as a client without a password does.
func get(t *testing.T, s *siasim.Sim, path string, out any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: s.Host().Dial, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.SiadURL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "Sia-Agent")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", path, resp.StatusCode, err)
	}
}

// TestRenterdsAdapterLivesOnIt: with packing a put of less than a slab touches no
// host until the buffer is full.
func TestRenterdsAdapterLivesOnIt(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, siasim.Config{Hosts: 3, Contracts: 3, Data: 2, Parity: 1, Sector: 256 << 10, Up: siasim.Bandwidth{Start: 1 << 20}})
		c, err := renterd.System{}.Attach(t.Context(), system.Deployment{Client: s.Host(), Write: true, Options: system.Options{"url": s.RenterdURL(), "password": variable}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		n := c.Nodes()[0].(system.Store)
		content := bytes.Repeat([]byte("x"), 300<<10)
		first, err := n.Put(t.Context(), "a", int64(len(content)), bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if truth := s.Truth(); truth.Sent != 0 {
			t.Errorf("a packed object is on hosts: %+v", truth)
		}
		if err := n.(system.Cooler).Cool(t.Context(), first); !errors.Is(err, system.ErrWarm) {
			t.Errorf("cool: %v", err)
		}
		from := time.Now()
		if _, err := n.Put(t.Context(), "b", int64(len(content)), bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		// The buffer of 512 KiB is full: three shards of 256 KiB leave.
		if took := time.Since(from); took < 700*time.Millisecond || took > time.Second {
			t.Errorf("the put that fills the buffer took %v", took)
		}
		if err := n.(system.Settler).Settle(t.Context(), first); err != nil {
			t.Error(err)
		}
		var got bytes.Buffer
		if err := n.Get(t.Context(), first, &got); err != nil || !bytes.Equal(got.Bytes(), content) {
			t.Errorf("get: %d bytes, %v", got.Len(), err)
		}
		h, err := n.(system.Stats).Stats(t.Context())
		if truth := s.Truth(); err != nil || h.Objects != 2 || h.Absolute != 3*256<<10 || truth.Sent != h.Absolute {
			t.Errorf("stats: %+v, %v; truth %+v", h, err, truth)
		}
		wantAccounts(t, s.Truth())
	})
}

// TestSlowAPI: the API of a renter with many files takes minutes for each answer.
// What is asked of it ends when the caller's time does, and not before.
func TestSlowAPI(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	for _, test := range []struct {
		system system.Attacher
		url    func(*siasim.Sim) string
	}{{siad.System{}, (*siasim.Sim).SiadURL}, {renterd.System{}, (*siasim.Sim).RenterdURL}} {
		t.Run(test.system.Info().Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, siasim.Config{Latency: siasim.Latency{Base: 6 * time.Minute}})
				c, err := test.system.Attach(t.Context(), system.Deployment{Client: s.Host(), Write: true, Options: system.Options{"url": test.url(s), "password": variable}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := c.Stop(context.Background()); err != nil {
						t.Error(err)
					}
				})
				n := c.Nodes()[0]
				for _, call := range n.(system.Monitored).Calls() {
					from := time.Now()
					readings, err := call.Read(t.Context())
					if err != nil || len(readings) == 0 || time.Since(from) < 6*time.Minute {
						t.Errorf("%s: %v, %v after %v", call.Name, readings, err, time.Since(from))
					}
					short, cancel := context.WithTimeout(t.Context(), time.Minute)
					from = time.Now()
					if _, err := call.Read(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(from) > time.Minute {
						t.Errorf("%s: %v after %v", call.Name, err, time.Since(from))
					}
					cancel()
				}
				if all, err := n.(system.Lister).List(t.Context()); err != nil || len(all) != 0 {
					t.Errorf("list: %v, %v", all, err)
				}
				if _, err := n.(system.Coster).Costs(t.Context()); err != nil {
					t.Errorf("costs: %v", err)
				}
			})
		})
	}
}
