package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What is read is written in one way, which is read as the same.
func TestTextsOfASyncAreCanonical(t *testing.T) {
	for _, c := range []struct {
		form string
		in   string
		want string
	}{
		{"speeds", "link", "link"},
		{"speeds", " lognormal  8000kbit x3.0", "lognormal 8Mbit x3"},
		{"speeds", "lognormal 8Mbit x1", "lognormal 8Mbit x1"},
		{"speeds", "uniform 1Mbit..50Mbit/s", "uniform 1Mbit..50Mbit"},
		{"speeds", "loguniform 500kbit..0.05Gbit", "loguniform 500kbit..50Mbit"},
		{"speeds", "list 1Mbps  5Mbit 1Mbit", "list 1Mbit 5Mbit 1Mbit"},
		{"trouble", "none", "none"},
		{"trouble", "1 silent;25.0% strangers ; 2 at 500000bit", "1 silent; 25% stranger; 2 at 500kbit"},
		{"trouble", "1 at 1Mbit; 1 at 2Mbit", "1 at 1Mbit; 1 at 2Mbit"},
		{"syncfaults", "none", "none"},
		{"syncfaults", "crash 1 peers at 50.0% ;cut node at 0 for 60s", "crash 1 peer at 50%; cut node at 0s for 1m"},
		{"syncfaults", "rate 1000kbit of peers at 20s", "rate 1Mbit of peers at 20s"},
		{"syncfaults", "rate 1Mbit of node at 0% for 5s", "rate 1Mbit of node at 0% for 5s"},
		{"syncfaults", "crash node at 50% for 2s without data", "crash node at 50% for 2s without data"},
		{"syncfaults", "crash 100% of peers at 5s", "crash peers at 5s"},
	} {
		f := formOf(c.form)
		got, err := f.parse(c.in)
		if err != nil || got != c.want {
			t.Errorf("%s %q: got %q (%v), want %q", c.form, c.in, got, err, c.want)
			continue
		}
		if again, err := f.parse(got); err != nil || again != got {
			t.Errorf("%s %q: read again %q (%v)", c.form, got, again, err)
		}
	}
}

func TestSyncFaults(t *testing.T) {
	faults, err := ParseSyncFaults("crash 25% of peers at 50%; cut node at 10s for 5s")
	if err != nil || len(faults) != 2 {
		t.Fatal(faults, err)
	}
	if f := faults[0]; f.Kind != FaultCrash || f.Who != WhoPeers || f.Part != 0.5 || f.Of(5) != 2 || f.For != 0 {
		t.Errorf("%+v", f)
	}
	if f := faults[1]; f.Kind != FaultCut || f.Who != WhoNode || !math.IsNaN(f.Part) || f.At.Seconds() != 10 || f.For.Seconds() != 5 {
		t.Errorf("%+v", f)
	}
	// The two scenarios do not know each other's groups.
	if _, err := ParseFaults("crash peers at 50%"); err == nil {
		t.Error("a swarm has peers")
	}
	if _, err := ParseSyncFaults("crash seeders at 50%"); err == nil || !strings.Contains(err.Error(), "peers or node") {
		t.Error(err)
	}
}

func TestTroubleOfPeers(t *testing.T) {
	trouble, err := ParseTrouble("30% silent; 2 at 1Mbit")
	if err != nil || len(trouble) != 2 {
		t.Fatal(trouble, err)
	}
	if silent, slow := trouble[0], trouble[1]; silent.Of(10) != 3 || silent.Of(4) != 2 || silent.Manner != MannerSilent || slow.Of(1) != 2 || slow.Rate != 1e6 || slow.Manner != "" {
		t.Errorf("%+v", trouble)
	}
}

// Rates that are drawn have the distribution that the text says, and the first
// peers of many have those of few.
func TestSpeedsAreDrawn(t *testing.T) {
	const n = 20_000
	for text, want := range map[string]struct{ median, lowest, highest, sd float64 }{ // sd: of the logarithms
		"lognormal 8Mbit x3":          {8e6, 8e6 / math.Pow(3, 3.1), 8e6 * math.Pow(3, 3.1), math.Log(3)},
		"lognormal 8Mbit x1":          {8e6, 8e6, 8e6, 0},
		"uniform 1Mbit..49Mbit":       {25e6, 1e6, 49e6, 0},
		"loguniform 1Mbit..100Mbit":   {10e6, 1e6, 100e6, math.Log(100) / math.Sqrt(12)},
		"list 1Mbit 5Mbit 25Mbit":     {5e6, 1e6, 25e6, math.Log(5) * math.Sqrt(2.0/3)},
		"loguniform 10Mbit..10.1Mbit": {10.05e6, 10e6, 10.1e6, 0},
	} {
		v, err := ParseSpeeds(text)
		if err != nil {
			t.Fatal(err)
		}
		draw := func(n int) []BitRate {
			r := rand.New(rand.NewPCG(1, 2))
			return v.Draw(n, r.Float64)
		}
		rates := draw(n)
		if !slices.Equal(rates[:7], draw(7)) {
			t.Errorf("%s: seven peers have not what the first of many have", text)
		}
		mean, square := 0.0, 0.0
		for _, r := range rates {
			mean += math.Log(float64(r)) / n
		}
		for _, r := range rates {
			square += math.Pow(math.Log(float64(r))-mean, 2) / n
		}
		if sd := math.Sqrt(square); want.sd > 0 && math.Abs(sd/want.sd-1) > 0.03 {
			t.Errorf("%s: standard deviation of the logarithms %g, want %g", text, sd, want.sd)
		}
		slices.Sort(rates)
		if m := float64(rates[n/2]); math.Abs(m/want.median-1) > 0.05 {
			t.Errorf("%s: median %g, want %g", text, m, want.median)
		}
		if lowest, highest := float64(rates[0]), float64(rates[n-1]); lowest < 0.999*want.lowest || highest > 1.001*want.highest || highest < 0.8*want.highest {
			t.Errorf("%s: from %g to %g, want %g to %g", text, lowest, highest, want.lowest, want.highest)
		}
	}
	for _, r := range (Speeds{Kind: "link"}).Draw(3, func() float64 { t.Error("asked for chance"); return 0 }) {
		if r != 0 {
			t.Errorf("link: %v", r)
		}
	}
}
