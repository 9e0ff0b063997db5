package report

import (
	"fmt"
	"iter"
	"maps"
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

	latency func(files, bytes, hours float64) float64 // of all calls of a poll
	rate    func(share float64) float64               // how fast objects come, relative; nil: alike
	extra   float64                                   // of the absolute bytes; 1: as asked

	lag float64 // seconds until what was accepted is on the servers

	leakAt, leak       float64    // hours, SC: money that no contract has
	renewAt, renewLoss float64    // a contract is replaced before its time, and so much vanishes
	allRenewed         float64    // hours: all contracts are replaced, in order
	tellsEnded         bool       // the renter tells what those had used
	holeAt, hole       float64    // a part of the spending that no purpose has
	depositAt, deposit float64    // money comes in
	unnamed            float64    // share of the cost of data that has no purpose
	below              [2]float64 // hours with objects below their redundancy; to the end if the second is 0
	downtime           [2]float64 // hours without a session
	lost               int        // operations that a kill took with it
	stall              [2]float64 // hours in which nothing is stored
	paused             bool       // the session before it ended in order
	failing            float64    // share of calls that are not answered
	absurd             int        // polls with an underflow
	going              bool       // not over
	ended              string
	job                func(i int, j *record.Job) // changes a job
	design             bool
	put                func(files, hours float64) float64 // seconds to store an object; nil: 3
	fixed              []float64                          // when the objects are accepted, seconds; nil: see times
	collect            bool
	link               map[string]float64 // what the trial says of its link
}

// plainLoad is a load test in which nothing is wrong.
func plainLoad(seed uint64) loadTruth {
	return loadTruth{seed: seed, hours: 48, every: 60, objects: 4000, size: 1, sector: 4 << 20, needed: 10, servers: 30, extra: 1, ended: "all done"}
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
		file = "scenario: collect\ntitle: Synthetic polls\nsystems: [{use: siad, mode: attach}]\ncollect: {every: " + every + "}\n"
	}
	e, err := experiment.Parse("synthetic.yaml", []byte(file), nil, experiment.Catalog{{Name: "siad", Modes: []string{"start", "attach"}, Summary: "renter"}})
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	return plan
}

// designed are the phases of a designed experiment, and when which object of
// them is accepted.
func (s loadTruth) designed() (phases []designPhase, at []float64, size []int64) {
	rng := rand.New(rand.NewPCG(s.seed, 8))
	orders := [][]string{{"files", "bytes", "idle"}, {"files", "idle", "bytes"}, {"bytes", "files", "idle"}, {"bytes", "idle", "files"}, {"idle", "files", "bytes"}, {"idle", "bytes", "files"}}
	rng.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
	each, now := s.hours*3600/19, 0.0
	add := func(what string) {
		p := designPhase{what: what, from: now, to: now + each - 300, probed: now + each}
		n, bytes := map[string]int{"files": s.objects / 6, "bytes": 3}[what], int64(1)
		if what == "bytes" {
			bytes = 1 << 30
		}
		for i := range n {
			at, size = append(at, p.from+(p.to-p.from)*float64(i+1)/float64(n)), append(size, bytes)
		}
		for i := range 5 {
			at, size = append(at, p.to+20*float64(i+1)), append(size, 1)
		}
		phases, now = append(phases, p), p.probed
	}
	add("start")
	for _, o := range orders {
		for _, what := range o {
			add(what)
		}
	}
	return phases, at, size
}

// times are when the objects are accepted, seconds.
func (s loadTruth) times() []float64 {
	if s.design {
		_, at, _ := s.designed()
		return at
	}
	if s.fixed != nil {
		return s.fixed
	}
	at, sum := make([]float64, s.objects), 0.0
	for i := range at {
		r := 1.0
		if s.rate != nil {
			r = s.rate(float64(i) / float64(s.objects))
		}
		sum += 1 / r
		at[i] = sum
	}
	lost := 0.0
	for _, x := range [][2]float64{s.downtime, s.stall} {
		lost += (x[1] - x[0]) * 3600
	}
	for i := range at {
		at[i] = 1800 + at[i]/sum*(s.hours*3600-3600-lost)
		for _, x := range [][2]float64{s.stall, s.downtime} {
			if at[i] > x[0]*3600 {
				at[i] += (x[1] - x[0]) * 3600
			}
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
	ended                                                    map[string]*big.Int
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
	l := ledger{balance: sc(9000), outgoing: new(big.Int), fees: new(big.Int), storage: new(big.Int), upload: new(big.Int), unspent: new(big.Int), spent: new(big.Int)}
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
	if s.unnamed > 0 {
		data, _ := new(big.Float).SetInt(new(big.Int).Add(l.upload, l.storage)).Float64()
		part, _ := big.NewFloat(s.unnamed * data).Int(nil)
		l.unspent.Sub(l.unspent, part)
	}
	l.size = float64(stored) * s.absolute()
	hours := at / 3600
	if s.allRenewed > 0 && hours >= s.allRenewed {
		old := s
		old.allRenewed = 0
		at := s.allRenewed * 3600
		n, _ := slices.BinarySearch(s.times(), at)
		o := old.state(at, n, contracts)
		l.ended = map[string]*big.Int{"fees": o.fees, "storage": o.storage, "upload": o.upload, "": new(big.Int).Sub(o.spent, o.unspent)}
		l.fees.Sub(l.fees, o.fees).Add(l.fees, sc(100))
		l.storage.Sub(l.storage, o.storage)
		l.upload.Sub(l.upload, o.upload)
		l.unspent.Sub(l.unspent, o.unspent).Add(l.unspent, sc(3000))
		l.spent.Sub(l.spent, o.spent).Add(l.spent, sc(3100))
		l.balance.Add(l.balance, o.unspent).Sub(l.balance, sc(3100))
	}
	if s.leak > 0 && hours >= s.leakAt {
		l.balance.Sub(l.balance, sc(s.leak))
	}
	if s.renewLoss > 0 && hours >= s.renewAt {
		l.unspent.Sub(l.unspent, sc(s.renewLoss))
		l.spent.Sub(l.spent, sc(s.renewLoss))
		l.size -= 0.02 * s.absolute() * float64(s.objects)
	}
	if s.hole > 0 && hours >= s.holeAt {
		l.unspent.Sub(l.unspent, sc(s.hole))
	}
	if s.deposit > 0 && hours >= s.depositAt {
		l.balance.Add(l.balance, sc(s.deposit))
	}
	return l
}

// absolute are the bytes that one object takes.
func (s loadTruth) absolute() float64 {
	padded := s.size
	if unit := s.sector * s.needed; unit > 0 {
		padded = max(1, (s.size+unit-1)/unit) * unit
	}
	return float64(padded) * float64(s.servers) / float64(s.needed) * s.extra
}

func (s loadTruth) polls() iter.Seq[record.Poll] {
	return func(yield func(record.Poll) bool) {
		rng := rand.New(rand.NewPCG(s.seed, 3))
		at, contracts := s.times(), s.contracts(rand.New(rand.NewPCG(s.seed, 4)))
		by := func(t float64) int {
			n, _ := slices.BinarySearch(at, t)
			return n
		}
		latency := s.latency
		if latency == nil {
			latency = func(_, _, _ float64) float64 { return 0.8 }
		}
		missed, seq, next := 0, int64(0), 0.0
		for k := 0; float64(k)*s.every < s.hours*3600; k++ {
			start := float64(k) * s.every
			h := start / 3600
			if start < next || s.downtime[1] > 0 && h >= s.downtime[0] && h < s.downtime[1] {
				missed++
				continue
			}
			n := by(start)
			took := latency(float64(n), s.bytesOf(n), h) * math.Exp(0.1*rng.NormFloat64())
			p := record.Poll{Seq: seq, Intended: dur(start), Start: dur(start + 0.01), Missed: missed}
			missed = 0
			seq++
			t := start + 0.01
			answered := map[string]bool{}
			moments := map[string]float64{}
			for _, c := range []struct {
				name  string
				share float64
			}{{"/wallet", 0.1}, {"/renter/contracts", 0.3}, {"/renter/files", 0.6}} {
				call := record.PollCall{Name: c.name, Start: dur(t), End: dur(t + took*c.share)}
				moments[c.name] = t + took*c.share*rng.Float64()
				t += took * c.share
				if rng.Float64() < s.failing {
					call.Error = "connection refused"
				}
				answered[c.name] = call.Error == ""
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
			if answered["/wallet"] {
				m := moments["/wallet"]
				l := s.state(m, by(m), contracts)
				money(system.ReadBalance, l.balance)
				money(system.ReadOutgoing, l.outgoing)
				money(system.ReadIncoming, new(big.Int))
			}
			if answered["/renter/contracts"] {
				m := moments["/renter/contracts"]
				l := s.state(m, by(m), contracts)
				money(system.ReadSpent, l.spent)
				money("spent:fees", l.fees)
				money("spent:storage", l.storage)
				money("spent:upload", l.upload)
				if k > 100 && k <= 100+s.absurd {
					p.Readings = append(p.Readings, record.Reading{Name: "spent:download", Bad: "1.8e19 is below zero"})
				} else {
					money("spent:download", new(big.Int))
				}
				money(system.ReadUnspent, l.unspent)
				if s.tellsEnded {
					for _, purpose := range []string{"", "fees", "storage", "upload"} {
						v := l.ended[purpose]
						if v == nil {
							v = new(big.Int)
						}
						if purpose == "" {
							money(system.ReadEnded, v)
							continue
						}
						money(system.ReadEndedPrefix+purpose, v)
					}
				}
				number(system.ReadContracts, float64(l.contracts))
				number(system.ReadContractBytes, l.size)
			}
			if answered["/renter/files"] {
				m := moments["/renter/files"]
				number(system.ReadFiles, float64(by(m)))
				number(system.ReadUploads, 5)
				number(system.ReadFileBytes, s.bytesOf(by(m)))
				number(system.ReadAbsolute, float64(by(m-s.lag))*s.absolute())
				if by(m) > 0 {
					r := float64(s.servers) / float64(s.needed) * s.extra
					number(system.ReadRedundancyMean, r)
					number(system.ReadRedundancyMax, 2*r)
				}
				number(system.ReadBelow, map[bool]float64{true: 7}[s.below[0] > 0 && h >= s.below[0] && (s.below[1] == 0 || h < s.below[1])])
			}
			if !yield(p) {
				return
			}
		}
	}
}

// bytesOf are the bytes of the first n objects.
func (s loadTruth) bytesOf(n int) float64 {
	if !s.design {
		return float64(n) * float64(s.size)
	}
	_, _, size := s.designed()
	sum := int64(0)
	for _, v := range size[:n] {
		sum += v
	}
	return float64(sum)
}

func dur(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (s loadTruth) jobs() iter.Seq[record.Job] {
	return func(yield func(record.Job) bool) {
		rng := rand.New(rand.NewPCG(s.seed, 5))
		at, size := s.times(), []int64(nil)
		if s.design {
			_, _, size = s.designed()
		}
		for i, t := range at {
			took := 3 * math.Exp(0.2*rng.NormFloat64())
			if s.put != nil {
				took = s.put(float64(i), t/3600) * math.Exp(0.1*rng.NormFloat64())
			}
			j := record.Job{Object: int64(i), State: record.JobDurable, Attempts: 1, Name: fmt.Sprint("run/", i), Ref: fmt.Sprint("ref-", i), Size: s.size,
				Began: dur(t - took), Accepted: dur(t), Durable: dur(t + 300*math.Exp(0.1*rng.NormFloat64()))}
			if size != nil {
				j.Size = size[i]
			}
			if s.job != nil {
				s.job(i, &j)
			}
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
		if s.paused {
			all = append(all, record.Event{Trial: trial, At: at(s.downtime[0]), Kind: "session", What: "paused"})
		}
		all = append(all, record.Event{At: at(s.downtime[1]), Kind: "phase", What: "run resumed"}, record.Event{Trial: trial, At: at(s.downtime[1]), Kind: "session", What: "continued"})
	}
	if s.design {
		phases, _, _ := s.designed()
		for i, p := range phases {
			all = append(all, record.Event{Trial: trial, At: at(p.probed / 3600), Kind: "phase", What: "attribution: " + p.what, Detail: fmt.Sprintf("phase %d from %d to %d ns: 1 s, round 1", i, dur(p.from), dur(p.to))})
		}
	}
	if s.going {
		return all
	}
	return append(all, record.Event{Trial: trial, At: at(s.hours), Kind: "phase", What: "trial ended", Detail: s.ended}, record.Event{At: at(s.hours), Kind: "phase", What: "run ends"})
}

func (s loadTruth) trial(plan *experiment.Plan) record.Trial {
	t := record.Trial{ID: 1, Cell: plan.Cells[0].ID, Epoch: loadBegun, State: record.Done, Seconds: s.hours * 3600, Outcomes: map[string]int64{"ok": int64(s.objects - s.lost)},
		Metrics: map[string]float64{"file_bandwidth": float64(s.objects) * float64(s.size) / (s.hours * 3600)}}
	maps.Copy(t.Metrics, s.link)
	if s.going {
		t.State = record.Running
	}
	return t
}

var siadMeta = map[string]string{"plimsoll": "v0.0.0-test", "command": "plimsoll run sia-worst-case",
	"systems": `{"siad":{"version":"siad 1.5.9","redundancy":"10 data + 20 parity pieces","sector":"4194304"}}`}

// report computes the report without a run directory.
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
	run, err := record.Create(dir, raw, siadMeta, []record.Metric{{Key: "file_bandwidth", Name: "file bandwidth", Unit: "B/s", Better: record.Higher, Help: "bytes per second"}})
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

// designPhase is a stretch of a designed load test.
type designPhase struct {
	what             string
	from, to, probed float64
}
