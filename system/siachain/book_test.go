package siachain

import (
	"errors"
	"testing"
	"time"

	"go.sia.tech/coreutils/syncer"

	"github.com/plimsoll-project/plimsoll/system"
)

// connected is a book of peers that have shaken hands.
func connected(t *testing.T, peers ...string) *book {
	t.Helper()
	b := newBook(peers)
	for _, a := range peers {
		b.dial(b.of(a), &metered{}, nil)
		must(t, b.UpdatePeerInfo(a, func(i *syncer.PeerInfo) { i.LastConnect = time.Now() }))
	}
	b.begin()
	return b
}

func (b *book) delivers(a string, blocks uint64) {
	b.UpdatePeerInfo(a, func(i *syncer.PeerInfo) { i.SyncedBlocks += blocks; i.SyncDuration += time.Second })
}

const one, two, three = "10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"

// A failure is charged to whom it must have been, and to nobody where it may have
// been one of several.
func TestBlame(t *testing.T) {
	late := errors.New("late")
	type want struct{ timedOut, failed []int64 }
	for name, c := range map[string]struct {
		do   func(b *book)
		want want
	}{
		"who has delivered since was not waited for": {func(b *book) {
			b.delivers(one, 100)
			b.delivers(three, 100)
			b.blame(late, true, time.Hour)
		}, want{[]int64{0, 1, 0}, []int64{0, 0, 0}}},
		"one of two": {func(b *book) {
			b.delivers(one, 100)
			b.blame(late, true, time.Hour)
		}, want{[]int64{0, -1, -1}, []int64{0, -1, -1}}},
		"whose connection is lost": {func(b *book) {
			b.of(two).lost = true
			b.blame(late, false, time.Hour)
		}, want{[]int64{0, 0, 0}, []int64{0, 1, 0}}},
		"none fails twice in a round": {func(b *book) {
			b.of(two).lost = true
			b.blame(late, false, time.Hour)
			b.of(three).lost = true
			b.blame(late, false, time.Hour)
			b.blame(late, false, time.Hour) // who is left
			b.begin()
			b.delivers(one, 100)
			b.delivers(two, 100)
			b.blame(late, true, time.Hour)
		}, want{[]int64{0, 0, 1}, []int64{1, 1, 1}}},
		"a delivery long ago": {func(b *book) {
			b.delivers(one, 100)
			b.blame(late, true, 0)
		}, want{[]int64{-1, -1, -1}, []int64{-1, -1, -1}}},
	} {
		b := connected(t, one, two, three)
		c.do(b)
		shares, timedOut, failed := b.shares()
		var total int64
		for i, s := range shares {
			if s.TimedOut != c.want.timedOut[i] || s.Failed != c.want.failed[i] {
				t.Errorf("%s: peer %d: %+v", name, i+1, s)
			}
			if (s.Requests == -1) != (s.TimedOut == -1) {
				t.Errorf("%s: requests that are not known are %d", name, s.Requests)
			}
			total += max(0, s.TimedOut) + max(0, s.Failed)
		}
		if told := timedOut + failed; told < 1 || total > told {
			t.Errorf("%s: %d failures of all, %d of the peers", name, told, total)
		}
	}
}

func TestShares(t *testing.T) {
	b := connected(t, one, two)
	b.delivers(two, 100)
	b.delivers(two, 37)
	b.of(two).received.Add(1000)
	b.dial(b.of(two), &metered{}, nil) // connected anew
	b.of(two).received.Add(10)
	b.dial(b.of(one), nil, errors.New("nobody there"))
	shares, _, _ := b.shares()
	want := []system.PeerShare{
		{Address: one, Trouble: "nobody there"},
		{Address: two, Blocks: 137, Bytes: 1010, Busy: 2 * time.Second, Requests: 2},
	}
	for i := range want {
		if shares[i] != want[i] {
			t.Errorf("%+v, want %+v", shares[i], want[i])
		}
	}
}

// Who connects by himself may stay, and is never dialled.
func TestOnlyWhomItWasTold(t *testing.T) {
	b := newBook([]string{one})
	must(t, b.AddPeer(two))
	must(t, b.UpdatePeerInfo(two, func(*syncer.PeerInfo) {}))
	if p, err := b.Peers(); err != nil || len(p) != 1 || p[0].Address != one {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := b.PeerInfo(three); !errors.Is(err, syncer.ErrPeerNotFound) {
		t.Error(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
