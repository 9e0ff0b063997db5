package report

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

const uploadFile = `
scenario: upload
title: Synthetic load
question: What does it take to store a million bytes, and when does it slow down?
systems: [{use: siad, mode: attach}]
data: {size: %s, objects: %d}
upload: {concurrency: 5, poll: %s, settle: 2h, price: "0.014 USD (2018-06-01)"}
allow: [write, spend]
`

// loadTruth is what a synthetic load test is to contain: the truth that a report of
// it has to find.
type loadTruth struct {
	seed    uint64
	hours   float64
	every   float64 // seconds from poll to poll
	objects int
	size    int64
	sector  int64 // of the padding
	needed  int64
	servers int64

	leakAt, leak float64    // hours, SC: money that no contract has
	downtime     [2]float64 // hours without a session
	lost         int        // operations that a kill took with it
	collect      bool
}

// plainLoad is a load test in which nothing is wrong.
func plainLoad(seed uint64) loadTruth {
	return loadTruth{seed: seed, hours: 48, every: 60, objects: 4000, size: 1, sector: 4 << 20, needed: 10, servers: 30}
}

var loadBegun = time.Date(2026, 4, 1, 8, 0, 0, 0, time.UTC)

func (s loadTruth) plan(t testing.TB) *experiment.Plan {
	t.Helper()
	every := time.Duration(s.every * float64(time.Second)).String()
	if s.every >= 60 {
		every = fmt.Sprintf("%dm", int(s.every/60))
	}
	file := fmt.Sprintf(uploadFile, fmt.Sprintf("%dB", s.size), s.objects, every)
	if s.collect {
		file = "scenario: collect\ntitle: Synthetic polls\nsystems: [{use: siad, mode: attach}]\ncollect: {every: " +
			every + "}\n"
	}
	e, err := experiment.Parse("synthetic.yaml", []byte(file), nil,
		experiment.Catalog{{Name: "siad", Modes: []string{"start", "attach"}}})
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	return plan
}

// times are when the objects are accepted, seconds.
func (s loadTruth) times() []float64 {
	at, lost := make([]float64, s.objects), (s.downtime[1]-s.downtime[0])*3600
	for i := range at {
		at[i] = 1800 + float64(i+1)/float64(s.objects)*(s.hours*3600-3600-lost)
		if at[i] > s.downtime[0]*3600 {
			at[i] += lost
		}
	}
	return at
}

var oneSC = new(big.Int).Exp(big.NewInt(10), big.NewInt(24), nil)

// sc is an amount of hastings, of thousandths of a siacoin.
func sc(v float64) *big.Int {
	return new(big.Int).Mul(big.NewInt(int64(math.Round(v*1e6))), new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil))
}

// formed is a contract: bought, confirmed in the wallet by a later block, and
// told by the renter at its own time.
type formed struct {
	at, listed, confirmed, amount, fee float64
	money, fees, all                   *big.Int
}

// ledger is the renter's state at a moment.
type ledger struct {
	balance, outgoing, fees, storage, upload, unspent, spent *big.Int
	contracts                                                int
	size                                                     float64
}

func (s loadTruth) contracts(rng *rand.Rand) []formed {
	var all []formed
	for i := range 50 {
		at := 600 + 150*float64(i)
		all = append(all, formed{at: at, amount: 60, fee: 2})
	}
	for h := 12.0; h < s.hours; h += 20 + 10*rng.Float64() { // more, later
		all = append(all, formed{at: h * 3600, amount: 25, fee: 1})
	}
	for i := range all {
		c := &all[i]
		c.money, c.fees, c.all = sc(c.amount), sc(c.fee), sc(c.amount+c.fee)
		c.listed = c.at + 5*rng.Float64()
		c.confirmed = c.at + 600*rng.Float64()
		if rng.Float64() < 0.3 { // seen by nobody until its block
			c.listed = c.at + 60 + 540*rng.Float64()
			c.confirmed = c.at
		}
	}
	return all
}

func (s loadTruth) state(at float64, stored int, contracts []formed) ledger {
	l := ledger{balance: sc(9000), outgoing: new(big.Int), fees: new(big.Int), storage: new(big.Int),
		upload: new(big.Int), unspent: new(big.Int), spent: new(big.Int)}
	for _, c := range contracts {
		all := c.all
		if at >= c.at {
			if at >= c.confirmed {
				l.balance.Sub(l.balance, all)
			} else {
				l.outgoing.Add(l.outgoing, all)
			}
		}
		if at >= c.listed {
			l.contracts++
			l.spent.Add(l.spent, all)
			l.fees.Add(l.fees, c.fees)
			l.unspent.Add(l.unspent, c.money)
		}
	}
	// Amounts with all their digits: sums of floats would not add up.
	per := new(big.Int).SetInt64(int64(1e9 / float64(s.objects)))
	per.Mul(per, sc(1.234567)).Div(per, big.NewInt(1e6))
	l.upload.Mul(per, big.NewInt(int64(stored)))
	l.storage.Div(new(big.Int).Mul(l.upload, big.NewInt(317)), big.NewInt(1000))
	l.unspent.Sub(l.unspent, l.upload).Sub(l.unspent, l.storage)
	l.size = float64(stored) * s.absolute()
	if s.leak > 0 && at/3600 >= s.leakAt {
		l.balance.Sub(l.balance, sc(s.leak))
	}
	return l
}

// absolute are the bytes that one object takes.
func (s loadTruth) absolute() float64 {
	padded := s.size
	if unit := s.sector * s.needed; unit > 0 {
		padded = max(1, (s.size+unit-1)/unit) * unit
	}
	return float64(padded) * float64(s.servers) / float64(s.needed)
}

func (s loadTruth) polls() iter.Seq[record.Poll] {
	return func(yield func(record.Poll) bool) {
		rng := rand.New(rand.NewPCG(s.seed, 3))
		at, contracts := s.times(), s.contracts(rand.New(rand.NewPCG(s.seed, 4)))
		by := func(t float64) int {
			n, _ := slices.BinarySearch(at, t)
			return n
		}
		missed, seq, next := 0, int64(0), 0.0
		for k := 0; float64(k)*s.every < s.hours*3600; k++ {
			start := float64(k) * s.every
			h := start / 3600
			if start < next || s.downtime[1] > 0 && h >= s.downtime[0] && h < s.downtime[1] {
				missed++
				continue
			}
			took := 0.8 * math.Exp(0.1*rng.NormFloat64())
			p := record.Poll{Seq: seq, Intended: dur(start), Start: dur(start + 0.01), Missed: missed}
			missed = 0
			seq++
			t := start + 0.01
			moments := map[string]float64{}
			for _, c := range []struct {
				name  string
				share float64
			}{{"/wallet", 0.1}, {"/renter/contracts", 0.3}, {"/renter/files", 0.6}} {
				call := record.PollCall{Name: c.name, Start: dur(t), End: dur(t + took*c.share)}
				moments[c.name] = t + took*c.share*rng.Float64()
				t += took * c.share
				rng.Float64() // whether it fails, once: the committed runs have these numbers
				p.Calls = append(p.Calls, call)
			}
			p.End, next = dur(t), t
			money := func(name string, v *big.Int) {
				f, _ := new(big.Float).Quo(new(big.Float).SetInt(v), new(big.Float).SetInt(oneSC)).Float64()
				p.Readings = append(p.Readings, record.Reading{Name: name, Value: f, Exact: v.String()})
			}
			number := func(name string, v float64) {
				p.Readings = append(p.Readings, record.Reading{Name: name, Value: v})
			}
			m := moments["/wallet"]
			l := s.state(m, by(m), contracts)
			money(system.ReadBalance, l.balance)
			money(system.ReadOutgoing, l.outgoing)
			money(system.ReadIncoming, new(big.Int))
			m = moments["/renter/contracts"]
			l = s.state(m, by(m), contracts)
			money(system.ReadSpent, l.spent)
			money("spent:fees", l.fees)
			money("spent:storage", l.storage)
			money("spent:upload", l.upload)
			money("spent:download", new(big.Int))
			money(system.ReadUnspent, l.unspent)
			number(system.ReadContracts, float64(l.contracts))
			number(system.ReadContractBytes, l.size)
			stored := by(moments["/renter/files"])
			number(system.ReadFiles, float64(stored))
			number(system.ReadUploads, 5)
			number(system.ReadFileBytes, float64(stored)*float64(s.size))
			number(system.ReadAbsolute, float64(stored)*s.absolute())
			if stored > 0 {
				r := float64(s.servers) / float64(s.needed)
				number(system.ReadRedundancyMean, r)
				number(system.ReadRedundancyMax, 2*r)
			}
			number(system.ReadBelow, 0)
			if !yield(p) {
				return
			}
		}
	}
}

func dur(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (s loadTruth) jobs() iter.Seq[record.Job] {
	return func(yield func(record.Job) bool) {
		rng := rand.New(rand.NewPCG(s.seed, 5))
		for i, t := range s.times() {
			took := 3 * math.Exp(0.2*rng.NormFloat64())
			j := record.Job{Object: int64(i), State: record.JobDurable, Attempts: 1, Name: fmt.Sprint("run/", i),
				Ref: fmt.Sprint("ref-", i), Size: s.size,
				Began: dur(t - took), Accepted: dur(t), Durable: dur(t + 300*math.Exp(0.1*rng.NormFloat64()))}
			if !yield(j) {
				return
			}
		}
	}
}

func (s loadTruth) events(trial int64) []record.Event {
	all := []record.Event{{At: loadBegun, Kind: "phase", What: "run begins"}}
	at := func(h float64) time.Time { return loadBegun.Add(dur(h * 3600)) }
	if s.downtime[1] > 0 {
		all = append(all, record.Event{At: at(s.downtime[1]), Kind: "phase", What: "run resumed"},
			record.Event{Trial: trial, At: at(s.downtime[1]), Kind: "session", What: "continued"})
	}
	return append(all, record.Event{Trial: trial, At: at(s.hours), Kind: "phase", What: "trial ended",
		Detail: "all done"}, record.Event{At: at(s.hours), Kind: "phase", What: "run ends"})
}

func (s loadTruth) trial(plan *experiment.Plan) record.Trial {
	t := record.Trial{ID: 1, Cell: plan.Cells[0].ID, Epoch: loadBegun, State: record.Done, Seconds: s.hours * 3600,
		Outcomes: map[string]int64{"ok": int64(s.objects - s.lost)},
		Metrics:  map[string]float64{"file_bandwidth": float64(s.objects) * float64(s.size) / (s.hours * 3600)}}
	return t
}

var siadMeta = map[string]string{"plimsoll": "v0.0.0-test", "command": "plimsoll run sia-worst-case",
	"systems": `{"siad":{"version":"siad 1.5.9","redundancy":"10 data + 20 parity pieces",` +
		`"currency":"SC","sector":"4194304"}}`}

// write makes a run directory of it.
func (s loadTruth) write(t testing.TB) string {
	t.Helper()
	plan := s.plan(t)
	raw, err := plan.Marshal()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	must(t, s.record(dir, raw, plan))
	return dir
}

func (s loadTruth) record(dir string, raw []byte, plan *experiment.Plan) error {
	run, err := record.Create(dir, raw, siadMeta,
		[]record.Metric{{Key: "file_bandwidth", Name: "file bandwidth", Unit: "B/s", Better: record.Higher,
			Help: "bytes per second"}})
	if err != nil {
		return err
	}
	w, err := run.Begin(plan.Cells[0].ID, 0, false, loadBegun)
	if err != nil {
		return err
	}
	for _, e := range s.events(w.ID()) {
		if e.Trial != 0 {
			err = w.Event(e)
		} else {
			err = run.Event(e)
		}
		if err != nil {
			return err
		}
	}
	for p := range s.polls() {
		if err := w.Poll(p); err != nil {
			return err
		}
	}
	var batch []record.Job
	for j := range s.jobs() {
		if batch = append(batch, j); len(batch) == 500 {
			if err := w.Jobs(batch...); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if err := w.Jobs(batch...); err != nil {
		return err
	}
	if err := w.End(s.trial(plan)); err != nil {
		return err
	}
	return run.Close()
}
