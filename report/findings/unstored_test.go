package findings

import (
	"slices"
	"strings"
	"testing"
)

func unstoredCases() map[string]example {
	still := Standstill{From: 7200, To: 14400, Limit: 900, Objects: 5, Bytes: 5e6, NoRoom: true}
	open := still
	open.Open = true
	full := []Filled{{Name: "siad", Stored: 20, Bytes: 2e7, Latest: 7100, Last: &open}}
	mended := []Filled{{Name: "siad", Stored: 20, Bytes: 2e7, Latest: 15000, Last: &still}}
	return map[string]example{"storage-full": when(StorageFull, full, mended)}
}

// One pause is long where others are short, and usual where its neighbours are as long.
func TestStoringPauses(t *testing.T) {
	short := slices.Repeat([]float64{10}, 100)
	const every, hours = 1, 3600.0
	if got := StoringPauses(short, every, hours); got[0] != 50 || slices.Max(got) != 50 {
		t.Errorf("of pauses of 10 s: %v", got)
	}
	if got := StoringPauses(short, 60, hours); got[0] != 180 {
		t.Errorf("polls of a minute see no less than three: %v", got[0])
	}
	if got := StoringPauses(short, every, 100*hours); got[0] != 360 {
		t.Errorf("of 100 hours a tenth of a percent matters: %v", got[0])
	}
	slows := append(slices.Repeat([]float64{10}, 300), slices.Repeat([]float64{100}, 14)...)
	if got := StoringPauses(slows, every, hours); got[0] != 50 || got[313] != 500 {
		t.Errorf("what gets slower does not stall: %v and %v", got[0], got[313])
	}
	if got := StoringPauses(short[:5], every, hours); got[0] != 86400 {
		t.Errorf("five pauses tell nothing of what is usual: %v", got)
	}
	if got := StoringPauses(nil, every, hours); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestStandstillsInWords(t *testing.T) {
	s := Standstill{From: 14400, To: 28800, Limit: 900, Objects: 5, Bytes: 5e6, GivenUp: 1, Polls: 80, Failed: 2, NoRoom: true}
	open := Standstill{From: 14400, To: 28800, Limit: 900, Open: true, GivenUp: 2}
	many := slices.Repeat([]Standstill{open}, standstillsNamed+2)
	for _, c := range []struct {
		of   []Standstill
		n    int
		want string // the last
	}{
		{[]Standstill{s}, 1, "siad: nothing for 4 h, from 4 h to 8 h after the beginning; 5 objects (5.00 MB) under way; 1 object tried in vain and given up; 2 of 80 polls in it not wholly answered; no contract was good for uploads; longer than 15 min counts"},
		{[]Standstill{open}, 1, "siad: nothing for the last 4 h, from 4 h after the beginning on; 2 objects tried in vain and given up; longer than 15 min counts"},
		{many, standstillsNamed + 1, "siad: 2 more, 1 d 4 h altogether"},
	} {
		f := NothingStored([]Unstored{{Name: "siad", Times: c.of}})
		if len(f) != 1 || f[0].Rule != "stalled" || len(f[0].Evidence) != c.n || f[0].Evidence[c.n-1] != c.want {
			t.Errorf("%+v, want %q", f, c.want)
		}
	}
	if f := NothingStored([]Unstored{{Name: "siad"}}); f != nil {
		t.Errorf("found without a time: %+v", f)
	}
}

// The system's own word is quoted, the exit condition's before those of its objects.
func TestStorageFullInWords(t *testing.T) {
	x := Filled{Name: "siad", Stored: 20, Bytes: 2e7, Latest: 7200, NoRoom: 2, WhyNoRoom: "not enough hosts"}
	for _, c := range []struct{ ended, want string }{
		{"", "siad: since 2 h after the beginning, with 20 objects (20.0 MB) stored; 2 objects were not stored for it, the latest: not enough hosts"},
		{"the system can take no more: 0 of 50 contracts are good", "siad: since 2 h after the beginning, with 20 objects (20.0 MB) stored; 0 of 50 contracts are good"},
	} {
		x.Ended = c.ended
		if f := StorageFull([]Filled{x, {Name: "renterd", Stored: 3}}); len(f) != 1 || strings.Join(f[0].Evidence, "|") != c.want {
			t.Errorf("%+v, want %q", f, c.want)
		}
	}
}
