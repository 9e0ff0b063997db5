package report

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// found of a rule, and its words.
func (r *Report) evidence(rule string) string {
	if f := r.found(rule); f != nil {
		return strings.Join(f.Evidence, "\n")
	}
	return ""
}

// alarms are the rules that may not speak of a load test in which nothing is wrong.
var alarms = []string{"money-missing", "money-sum", "counter-fell", "money-came-in", "redundancy-fell", "redundancy-repaired", "objects-missing", "objects-failed", "objects-refused", "objects-unreadable",
	"not-durable", "more-than-asked", "slows-down", "partial", "absurd", "adopted", "retried", "stalled", "storage-full"}

func TestNothingIsFoundWhereNothingIsWrong(t *testing.T) {
	for seed := range uint64(6) {
		s := plainLoad(seed)
		s.hours, s.objects, s.failing = 30, 1500, 0.01*float64(seed%3)
		if seed%2 == 1 {
			s.downtime, s.paused = [2]float64{15, 17}, true
		}
		r := s.report(t)
		for _, rule := range alarms {
			if r.found(rule) != nil {
				t.Errorf("seed %d: %s: %s", seed, rule, r.evidence(rule))
			}
		}
		if r.Verdict.Tone != Good {
			t.Errorf("seed %d: verdict %+v", seed, r.Verdict)
		}
	}
}

// breaksOf are the violations of a load test, without the rest of its report.
func breaksOf(t *testing.T, s loadTruth) []Break {
	t.Helper()
	plan := s.plan(t)
	seen, err := (&input{polls: streams(s)}).watched(1)
	must(t, err)
	l := &LoadTest{watch: seen, info: &Cell{plan: plan.Cells[0]}}
	l.check()
	return l.Breaks
}

func TestCleanAccountsHoldForManySeeds(t *testing.T) {
	n := uint64(60)
	if testing.Short() {
		n = 10
	}
	for seed := range n {
		s := plainLoad(seed)
		rng := rand.New(rand.NewPCG(seed, 99))
		s.hours, s.objects = 6+20*rng.Float64(), 200+rng.IntN(2000)
		slow := 200 * rng.Float64() * rng.Float64()
		s.latency = func(_, _, h float64) float64 { return 0.1 + slow*h/s.hours } // up to minutes from the first call to the last
		s.failing = 0.1 * rng.Float64() * rng.Float64()
		if b := breaksOf(t, s); len(b) > 0 {
			t.Errorf("seed %d: %+v", seed, b)
		}
	}
}

func TestMoneyLostIsFoundForManySeeds(t *testing.T) {
	n := uint64(25)
	if testing.Short() {
		n = 5
	}
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 77))
		s := plainLoad(seed)
		s.hours, s.objects = 24, 1000
		s.leakAt, s.leak = 5+15*rng.Float64(), 1+500*rng.Float64()
		breaks := breaksOf(t, s)
		if len(breaks) != 1 || breaks[0].Law != "wealth" || !breaks[0].Held {
			t.Errorf("seed %d: %v SC lost at %v h: %+v", seed, s.leak, s.leakAt, breaks)
			continue
		}
		b := breaks[0]
		if off := math.Abs(float64(b.Amount.Value) + s.leak); off > 1e-5 || float64(b.From) > s.leakAt*3600 || float64(b.To) < s.leakAt*3600 || b.To-b.From > 3600 { // money under way hides it for a while
			t.Errorf("seed %d: %v SC lost at %v h: %+v", seed, s.leak, s.leakAt, b)
		}
	}
}

func TestLawsOfMoney(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects = 30, 1500
	for _, c := range []struct {
		name, rule, words string
		change            func(*loadTruth)
		not               []string
	}{
		{"lost", "money-missing", "33.00 SC (0.462 USD)", func(s *loadTruth) { s.leakAt, s.leak = 20, 33 }, []string{"money-sum", "counter-fell", "money-came-in"}},
		{"renewal", "money-missing", "renewal before its time", func(s *loadTruth) { s.renewAt, s.renewLoss = 20, 69.3 }, []string{"money-sum", "money-left", "counter-fell"}},
		{"hole", "money-sum", "12.00 SC", func(s *loadTruth) { s.holeAt, s.hole = 20, 12 }, []string{"money-missing", "counter-fell"}},
		{"spending without a purpose", "money-unnamed", "16 % of the cost of data", func(s *loadTruth) { s.unnamed = 0.156 }, []string{"money-sum", "money-missing", "money-under-way"}},
		{"a hole beside it", "money-sum", "40.", func(s *loadTruth) { s.unnamed, s.holeAt, s.hole = 0.156, 20, 40 }, []string{"money-missing", "counter-fell"}},
		{"too much of it", "money-sum", "SC", func(s *loadTruth) { s.unnamed = 0.5 }, []string{"money-unnamed", "money-missing"}},
		{"deposit", "money-came-in", "500.0 SC", func(s *loadTruth) { s.depositAt, s.deposit = 20, 500 }, []string{"money-missing", "money-sum"}},
		{"at the very end", "money-under-way", "33.00 SC", func(s *loadTruth) { s.leakAt, s.leak = 29.8, 33 }, []string{"money-missing"}},
	} {
		x := s
		c.change(&x)
		r := x.report(t)
		if !strings.Contains(r.evidence(c.rule), c.words) {
			t.Errorf("%s: %s says %q; all: %+v", c.name, c.rule, r.evidence(c.rule), r.Loads[0].Breaks)
		}
		for _, rule := range c.not {
			if r.found(rule) != nil {
				t.Errorf("%s: %s, too: %s", c.name, rule, r.evidence(rule))
			}
		}
	}
}

// The amounts are those of a recorded siad 1.5.9, of three contracts before and
// after it sent data: 0.000078 SC of 250 SC are in none of the parts.
func TestSumOfARealSiad(t *testing.T) {
	before := map[string]string{"spent": "249999999999999999999999999", "spent:fees": "10378029783887984876100000", "spent:accounts": "3000000000000000000000000", "spent:maintenance": "11",
		"spent:storage": "0", "spent:upload": "0", "spent:download": "0", "unspent": "236621970216112015123899888"}
	after := map[string]string{"spent": before["spent"], "spent:fees": before["spent:fees"], "spent:accounts": before["spent:accounts"], "spent:maintenance": "11",
		"spent:storage": "316320426664642215936", "spent:upload": "184498720000000000000", "spent:download": "0", "unspent": "236621391331008017249549008"}
	w := newWatch()
	for i := range 20 {
		at := dur(600 * float64(i))
		p := record.Poll{Seq: int64(i), Start: at, End: at + time.Second, Calls: []record.PollCall{{Name: "/renter/contracts", Start: at, End: at + time.Second}}}
		amounts := after
		if i < 5 {
			amounts = before
		}
		for name, exact := range amounts {
			v, _ := new(big.Rat).SetString(exact)
			f, _ := v.Quo(v, ratOf(oneSC)).Float64()
			p.Readings = append(p.Readings, record.Reading{Name: name, Value: f, Exact: exact})
		}
		w.add(&p)
	}
	w.close()
	l := &LoadTest{watch: w, info: &Cell{plan: plainLoad(1).plan(t).Cells[0]}, currency: "SC"}
	// What no purpose explains was used all the same, and is a purpose of its own.
	price, text := l.info.price()
	m := w.economy("SC", price, text, false, 2, 1e12, 1)
	last := m.Kinds[len(m.Kinds)-1]
	if m.Used.Exact != "0.00057888510399787435088" || last.Kind != unexplained || last.Amount.Exact != "0.000078065957333232134944" {
		t.Errorf("used %+v, and the last purpose is %+v", m.Used, last)
	}
	for what, a := range map[string]Amount{"per file": m.PerFile, "per TB·month": m.PerTBMonth, "with bandwidth": m.WithBandwidth} {
		if in := 0.014 * float64(a.Value); math.Abs(float64(a.In)/in-1) > 1e-9 {
			t.Errorf("%s: %v at the stated price, want %v", what, a.In, in)
		}
	}
	if have := float64(m.WithBandwidth.Value / m.Used.Value); have != 1 {
		t.Errorf("a TB for a month costs %v times what was used for it", have)
	}
	l.check()
	if len(l.Breaks) > 0 {
		t.Errorf("breaks %+v", l.Breaks)
	}
	if u := l.Unnamed; u == nil || u.Amount.Exact != "0.000078065957333232135044" || math.Abs(float64(u.Share)-0.1559) > 1e-3 {
		t.Errorf("unnamed %+v", u)
	}
}

func TestObjectsAreCountedByWhatBecameOfThem(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects = 20, 800
	states := map[int]record.JobState{10: record.JobFailed, 11: record.JobRefused, 12: record.JobUnreadable, 13: record.JobMissing, 14: record.JobAccepted, 16: record.JobPutting}
	s.job = func(i int, j *record.Job) {
		if state, ok := states[i]; ok {
			j.State = state
			j.Durable = 0
		}
		switch i {
		case 17:
			j.Adopted = true
		case 18:
			j.Attempts = 3
		case 19:
			j.Durable = j.Accepted + 3*time.Hour
		}
	}
	r := s.report(t)
	o := r.Loads[0].Objects
	want := Objects{Set: 800, Accepted: 795, Durable: 794, NotDurable: 1, Late: 1, Putting: 1, Failed: 1, Refused: 1, Unreadable: 1, Missing: 1, Adopted: 1, Retried: 1, Attempts: 802, Bytes: 795}
	if o != want {
		t.Errorf("objects %+v, want %+v", o, want)
	}
	for _, rule := range []string{"objects-failed", "objects-refused", "objects-unreadable", "objects-missing", "not-durable", "adopted", "retried"} {
		if r.found(rule) == nil {
			t.Errorf("%s is not found", rule)
		}
	}
	if r.Verdict.Tone != Bad {
		t.Errorf("verdict %+v", r.Verdict)
	}
	if l := r.Loads[0]; float64(l.Accept.Value) < 2 || float64(l.Accept.Value) > 4 || float64(l.Durable.Value) < 250 || float64(l.Durable.Value) > 350 {
		t.Errorf("times %+v, %+v: the truth is 3 s and 303 s", l.Accept, l.Durable)
	}
}

func TestRedundancyThatFalls(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects = 20, 800
	s.below = [2]float64{12, 0}
	r := s.report(t)
	if e := r.evidence("redundancy-fell"); !strings.Contains(e, "up to 7 objects, from 12 h") || !strings.Contains(e, "not repaired within 7 h 59 min") {
		t.Errorf("redundancy-fell says %q", e)
	}
	s.below = [2]float64{12, 14}
	r = s.report(t)
	if e := r.evidence("redundancy-repaired"); !strings.Contains(e, "for 2 h") || r.found("redundancy-fell") != nil {
		t.Errorf("redundancy-repaired says %q; %+v", e, r.found("redundancy-fell"))
	}
}

func TestEfficiencyAndItsParts(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects, s.size = 20, 800, 10<<20 // a quarter of what a sector of 4 MiB in 10 pieces holds
	r := s.report(t)
	e := r.Loads[0].Efficiency
	for _, x := range []struct {
		name string
		have Num
		want float64
	}{{"efficiency", e.Value.Value, 0.25 / 3}, {"padding", e.Padding, 0.25}, {"redundancy", e.Redundancy, 1. / 3}, {"line", e.Line, 0.25 / 3}, {"copies", e.Copies, 3}, {"per file", e.PerFile, 120 << 20}} {
		if math.Abs(float64(x.have)/x.want-1) > 0.01 {
			t.Errorf("%s %v, want %v", x.name, x.have, x.want)
		}
	}
	if !(e.Value.Lo <= e.Value.Value && e.Value.Value <= e.Value.Hi) || r.found("more-than-asked") != nil {
		t.Errorf("efficiency %+v, %+v", e.Value, r.found("more-than-asked"))
	}
	s.extra = 5.3 / 3
	if got := s.report(t).evidence("more-than-asked"); !strings.Contains(got, "5.30× instead of 3.00×") {
		t.Errorf("redundancy of 5.3: %q", got)
	}
	// By the system's own word it came to two thirds of what was asked for, though the
	// last object was accepted long ago.
	l := &r.Loads[0]
	for i := range l.watch.values[system.ReadRedundancyMean] {
		l.watch.values[system.ReadRedundancyMean][i] = 2
	}
	l.shelf.accepted = l.shelf.accepted[:len(l.shelf.accepted)/2]
	if r.Findings = moreThanAsked(r); r.found("redundancy-never") == nil {
		t.Errorf("a mean redundancy of 2 of 3: %+v", r.Findings)
	}
}

func TestSpendingIsExact(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects = 20, 800
	r := s.report(t)
	m := r.Loads[0].Money
	if m == nil || m.Currency != "SC" || m.In != "USD" || m.Source != "2018-06-01" || !m.Whole {
		t.Fatalf("money %+v", m)
	}
	last := s.state(20*3600-60, 800, s.contracts(rand.New(rand.NewPCG(s.seed, 4))))
	for kind, want := range map[string]string{"fees": decimal(ratOf(last.fees).Quo(ratOf(last.fees), ratOf(oneSC)), 24), "upload": decimal(ratOf(last.upload).Quo(ratOf(last.upload), ratOf(oneSC)), 24)} {
		i := slices.IndexFunc(m.Kinds, func(k Spending) bool { return k.Kind == kind })
		if i < 0 || m.Kinds[i].Amount.Exact != want {
			t.Errorf("%s: %+v, want %s", kind, m.Kinds, want)
		}
	}
	used := float64(m.Kinds[0].Amount.Value + m.Kinds[1].Amount.Value + m.Kinds[2].Amount.Value)
	if math.Abs(float64(m.Used.Value)-used) > 1e-9*used || math.Abs(float64(m.Used.In)-0.014*used) > 1e-9*used {
		t.Errorf("used %+v, the parts are %v", m.Used, used)
	}
	// Fees and storage for 800 bytes and 84 days.
	want := float64(m.Kinds[0].Amount.Value+m.Kinds[1].Amount.Value) / (800e-12 * 84 / (365.0 / 12))
	if math.Abs(float64(m.PerTBMonth.Value)/want-1) > 1e-9 {
		t.Errorf("per TB·month %v, want %v", m.PerTBMonth.Value, want)
	}
	// The terminal has it in the currency of the price, too.
	var text strings.Builder
	must(t, r.WriteText(&text, 160))
	if in := moneyWords(float64(m.PerTBMonth.In), "USD"); !strings.Contains(text.String(), in) {
		t.Errorf("no %s in the text", in)
	}
}

func TestGrowthIsFound(t *testing.T) {
	for name, latency := range map[string]func(files, bytes, hours float64) float64{
		"linear":      func(files, _, _ float64) float64 { return 3 + files/10 },
		"constant":    nil,
		"exponential": func(files, _, _ float64) float64 { return 0.5 * math.Exp(files/300) },
	} {
		s := plainLoad(3)
		s.hours, s.objects, s.latency = 30, 1500, latency
		r := s.report(t)
		if got := strings.Contains(r.evidence("slows-down"), "API latency"); got != (latency != nil) {
			t.Errorf("%s: findings %+v", name, r.Findings)
		}
		if got := strings.Contains(r.Verdict.Text, "API latency grew from"); got != (latency != nil) {
			t.Errorf("%s: verdict %q", name, r.Verdict.Text)
		}
	}
}

func TestBandwidthThatFalls(t *testing.T) {
	s := plainLoad(3)
	s.hours, s.objects = 40, 4000
	s.rate = func(share float64) float64 { return math.Exp(-2 * share) }
	r := s.report(t)
	if e := r.evidence("slows-down"); !strings.Contains(e, "file bandwidth") || !strings.Contains(e, "absolute bandwidth") {
		t.Errorf("bandwidth that falls to a seventh: %q; %+v", e, r.Findings)
	}
}

func TestWhatIsNotOverSaysSoFirst(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects, s.going = 20, 800, true
	r := s.report(t)
	if !strings.HasPrefix(r.Verdict.Text, "So far: this is not over (go on with `plimsoll resume run-dir`)") || r.Findings[0].Rule != "partial" {
		t.Errorf("verdict %q, first finding %+v", r.Verdict.Text, r.Findings[0])
	}
	if out := text(t, r, 100); !strings.Contains(strings.Join(strings.Fields(out), " "), "plimsoll resume run-dir") || !strings.Contains(out, "not over") {
		t.Errorf("text %q", out)
	}
	if len(r.Figures) < 7 {
		t.Errorf("%d figures of a test that goes on", len(r.Figures))
	}
}

func TestSessionsAndTheEnd(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects, s.downtime, s.ended = 20, 800, [2]float64{8, 10}, "max_spend: 3600 SC were spent"
	r := s.report(t)
	l := r.Loads[0]
	if l.Sessions != 2 || l.CutOff != 1 || l.Crashes != 0 || l.Ended != "max_spend" || l.Why != "3600 SC were spent" {
		t.Errorf("%+v", l)
	}
	if l.Downtime < 1.9*3600 || l.Downtime > 2.1*3600 {
		t.Errorf("down for %v s: the truth is two hours", l.Downtime)
	}
	// Nothing is drawn over the time without a session.
	file, absolute := l.rates(240)
	for _, line := range [][]stretch{file, absolute, l.watch.medians(l.watch.latency, 240)} {
		parts := map[int]bool{}
		for _, p := range line {
			parts[p.part] = true
			if p.to > 8.1*3600 && p.from < 9.9*3600 {
				t.Errorf("a stretch lies over the gap: %+v", p)
			}
		}
		if len(parts) != 2 {
			t.Errorf("a line with one gap has %d parts", len(parts))
		}
	}
	// 17 of 19 hours are left of what is between the first put and the last.
	table := r.summaryTable()
	i := slices.IndexFunc(table.Rows, func(row []Entry) bool { return row[0].Text == "file bandwidth, within sessions" })
	if x := l.within(); x < 1.11 || x > 1.13 || i < 0 {
		t.Errorf("within sessions the bandwidth is %v times as high: the truth is 19/17; row %d", x, i)
	}
	// All attempts of which no operation is recorded: all but those of the outcomes.
	if l.Unrecorded != 0 {
		t.Errorf("%d of 800 attempts have no operation: 800 are recorded", l.Unrecorded)
	}
	s.lost = 37
	if r := s.report(t); r.Loads[0].Unrecorded != 37 || !strings.Contains(r.evidence("ended"), "37 at least") {
		t.Errorf("%d of 37 lost: %q", r.Loads[0].Unrecorded, r.evidence("ended"))
	}
	s.lost, s.paused = 0, true
	if l := s.report(t).Loads[0]; l.Crashes != 0 || l.CutOff != 0 {
		t.Errorf("a session that was paused is a crash: %+v", l)
	}
}

// A session that was killed ended with the last that it recorded, not with its last
// poll: here with a job.
func TestAKilledSessionEndsWithItsLastRecord(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.every, s.downtime = 6, 3600, [2]float64{2.5, 4}
	s.fixed = nil
	for i := range 100 {
		at := 36 * float64(i+1) // an hour
		if at > 1800 {
			at += 4 * 3600
		} else {
			at += 1.9 * 3600 // the last at 2.4 hours: the last poll was at 2
		}
		s.fixed = append(s.fixed, at)
	}
	s.objects = len(s.fixed)
	s.job = func(_ int, j *record.Job) { j.State, j.Durable = record.JobAccepted, 0 }
	run, err := record.Open(s.write(t))
	must(t, err)
	defer run.Close()
	r, err := Build(run)
	must(t, err)
	l := r.Loads[0]
	if have := float64(l.Downtime); math.Abs(have-1.6*3600) > 1 {
		t.Errorf("down for %v s: the truth is 1.6 hours", have)
	}
	from, to := l.storing()
	if want := (to - from) / (to - from - 1.6*3600); math.Abs(float64(l.within())/want-1) > 1e-3 {
		t.Errorf("within sessions the bandwidth is %v times as high: the truth is %v", l.within(), want)
	}
}

// A poll's state lies between its start and its end, and the rate of two polls
// between the rates that this allows.
func TestBandsHoldTheTruth(t *testing.T) {
	s := plainLoad(5)
	s.hours, s.objects = 20, 5000
	s.latency = func(_, _, _ float64) float64 { return 100 }
	l := s.report(t).Loads[0]
	_, absolute := l.rates(240)
	times := s.times()
	off, n := 0, 0
	for _, p := range absolute {
		if p.from < 1900 || p.to > 19*3600 {
			continue
		}
		n++
		// Objects come evenly: the true rate is that of all.
		truth := float64(len(times)) * s.absolute() / (times[len(times)-1] - times[0])
		if truth < p.lo*0.98 || truth > p.hi*1.02 {
			off++
		}
	}
	if n < 50 || off > n/50 {
		t.Errorf("%d of %d bands do not hold the true rate", off, n)
	}
}

func TestAbsurdReadingsAreGaps(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects, s.absurd = 20, 800, 7
	r := s.report(t)
	if e := r.evidence("absurd"); !strings.Contains(e, "spent:download ×7, last: 1.8e19 is below zero") {
		t.Errorf("absurd says %q", e)
	}
	for _, rule := range []string{"money-sum", "money-missing", "counter-fell"} {
		if r.found(rule) != nil {
			t.Errorf("a reading that is not to be used made %s: %s", rule, r.evidence(rule))
		}
	}
}

func TestCollectHasTheSameReport(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects, s.collect = 30, 1500, true
	s.latency = func(files, _, _ float64) float64 { return 1 + files/100 }
	s.leakAt, s.leak = 20, 33
	r := s.report(t)
	l := r.Loads[0]
	if l.Files != 1500 || l.Bytes != 1500 || l.Efficiency == nil || l.Money == nil {
		t.Errorf("%+v", l)
	}
	if !strings.Contains(r.evidence("money-missing"), "33.00 SC") || r.found("slows-down") == nil || len(r.Figures) < 6 {
		t.Errorf("findings %+v", r.Findings)
	}
	if strings.Contains(r.Verdict.Text, "stored") {
		t.Errorf("polls alone store nothing: %q", r.Verdict.Text)
	}
}

func TestStudyStandsBesideOurs(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects = 10, 400
	out := text(t, s.report(t), 100)
	for _, want := range []string{"the study (2018)", "48,358", "3625 SC ($50.75)"} {
		if !strings.Contains(out, want) {
			t.Errorf("the summary lacks %q:\n%s", want, out)
		}
	}
	for _, l := range strings.Split(out, "\n") {
		if len([]rune(l)) > 100 {
			t.Errorf("a line is wider than 100: %q", l)
		}
	}
}

func TestLoadOfARunDirectory(t *testing.T) {
	s := plainLoad(2)
	s.hours, s.objects = 8, 600
	r := buildDir(t, s.write(t))
	if len(r.Loads) != 1 || r.Loads[0].Files != 600 || r.Loads[0].Polls.N != 480 {
		t.Fatalf("loads %+v", r.Loads)
	}
	b, m := r.Loads[0], s.report(t).Loads[0]
	if b.Money.Spent != m.Money.Spent || b.Efficiency.Value != m.Efficiency.Value || b.LatencyLast != m.LatencyLast || len(b.Growth) != len(m.Growth) {
		t.Errorf("the run directory gives\n%+v\nits contents give\n%+v", b, m)
	}
}

// Where less is stored than whole sectors would take, they are not what the
// system rounds up to.
func TestASectorThatCannotBeIsNotAssumed(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects, s.size, s.sector = 10, 400, 1000, 0
	e := s.report(t).Loads[0].Efficiency
	if e.Sector.Known() || e.Padding.Known() || e.Line.Known() || e.Copies.Known() || math.Abs(float64(e.Value.Value)*3-1) > 0.02 || e.MeanTold != 3 {
		t.Errorf("efficiency %+v", e)
	}
}

// The probe's end is told by the trial's clock; the wall clock may have been set.
func TestProbesEndByTheTrialsClock(t *testing.T) {
	detail := "phase 3 from 1000000000 to 2000000000 ns: 1 s, round 1; probe: 5 puts of 1 B, median 0.1 s; stored so far: 7 files, 7 B"
	for text, want := range map[string]float64{detail: 3600, detail + "; probed until 2500000000 ns": 2.5} {
		l := &LoadTest{watch: newWatch()}
		l.sessions(&input{events: []record.Event{{Trial: 1, At: loadBegun.Add(time.Hour), Kind: "phase", What: "attribution: files", Detail: text}}}, &Trial{Trial: record.Trial{ID: 1, Epoch: loadBegun}})
		if len(l.phases) != 1 || l.phases[0].probed != want {
			t.Errorf("%q: %+v, want %v", text, l.phases, want)
		}
	}
}

// A load test that is not valid has no green verdict.
func TestInvalidLoadTestIsNotGreen(t *testing.T) {
	r := plainLoad(3).report(t)
	r.Run.Valid, r.Run.Done = 0, 1
	if v := r.judgeLoads(); v.Tone != Bad {
		t.Errorf("%+v", v)
	}
}
