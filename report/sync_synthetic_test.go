package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/sync"
)

var syncCatalog = experiment.Catalog{{Name: "ledger", Modes: []string{"start"}, Follows: true,
	Options: []experiment.OptionSpec{
		{Name: "send_blocks_timeout", Type: "duration", Default: "120s", Help: "a request for blocks"},
		{Name: "send_block_timeout", Type: "duration", Default: "60s", Help: "a request for a block"},
		{Name: "sync_interval", Type: "duration", Default: "5s", Help: "between questions"},
		{Name: "subscriber", Type: "enum", Enum: []string{"none", "personal", "full"}, Default: "none",
			Help: "what follows"},
		{Name: "db_sync", Type: "enum", Enum: []string{"on", "off"}, Default: "on", Help: "synced"},
	}}}

const syncFile = `
scenario: sync
title: Synthetic sync, after sia-sync
systems: [ledger]
link: {rate: 50Mbit, delay: 10ms}
sync:
  blocks: 3000
  peers: [4]
  storage: [disk, ram]
  vary:
    timeouts:
      - default: {send_blocks_timeout: 120s, send_block_timeout: 60s}
      - short: {send_blocks_timeout: 10s, send_block_timeout: 10s}
    subscriber: [full, none]
repetitions: 6
warmup: 0
`

// Truths of the synthetic ledger: what each level multiplies the time after the
// first block by. A RAM disk gains only as long as something subscribes.
const (
	syncDefault   = 14.0 // seconds until it serves
	syncFirst     = 1.4  // seconds before the first block
	truthNone     = 0.40 // subscriber none
	truthRAM      = 0.60 // storage ram, while the subscriber is full
	truthTimeouts = 0.90 // short ones
	syncBytes     = 6e6  // of the chain
	syncReplay    = 2.0  // seconds
)

// newcomer is what becomes of the fresh node of a synthetic trial.
type newcomer struct {
	first, chain, serve float64 // seconds after it was started; serve is when it ended, whatever its end
	height              float64 // share of the chain at the end
	outcome             record.Outcome
	class               string
	peers               []syncPeer
}

// syncTruth is what a synthetic run of the scenario sync is to contain.
type syncTruth struct {
	file    string
	truth   func(c *experiment.Cell) float64 // seconds until it serves; nil: syncTruthOf
	noise   float64                          // standard deviation of ln(time) within blocks; 0: 0.02
	node    func(c *experiment.Cell, block int, f *newcomer)
	metrics func(c *experiment.Cell, m map[string]float64)
}

func (s syncTruth) plan(t testing.TB) *experiment.Plan {
	t.Helper()
	if s.file == "" {
		s.file = syncFile
	}
	e, err := experiment.Parse("sync.yaml", []byte(s.file), nil, syncCatalog)
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	return plan
}

// is reports whether a cell has a level.
func is(c *experiment.Cell, path, value string) bool {
	return slices.ContainsFunc(c.Factors, func(f experiment.Factor) bool { return f.Path == path && f.Value == value })
}

// time is the truth of a cell.
func syncTruthOf(c *experiment.Cell) float64 {
	v := syncDefault
	none := is(c, "sync.vary.subscriber", "none")
	if none {
		v *= truthNone
	}
	if is(c, "sync.storage", "ram") && !none {
		v *= truthRAM
	}
	if is(c, "sync.vary.timeouts", "short") {
		v *= truthTimeouts
	}
	return v
}

// write makes the run directory through the recorder.
func (s syncTruth) write(t testing.TB) string {
	t.Helper()
	if s.noise == 0 {
		s.noise = 0.02
	}
	plan := s.plan(t)
	raw, err := plan.Marshal()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	meta := map[string]string{"plimsoll": "v0.0.0-test", "environment": `{"cpu.count":"2"}`,
		"constants": `{"ledger":[{"name":"blocks per request","value":"100",` +
			`"what":"What a fresh node asks a peer for at a time."},` +
			`{"name":"start of the workers","value":"1 s","what":"No block is requested before."}]}`}
	run, err := record.Create(dir, raw, meta, sync.Scenario{}.Metrics())
	must(t, err)
	begun := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	must(t, run.Event(record.Event{At: begun, Kind: "phase", What: "run begins"}))
	rng := rand.New(rand.NewPCG(13, 13))
	at := begun
	for block := range plan.Blocks {
		common := math.Exp(0.05 * rng.NormFloat64())
		for _, i := range rng.Perm(len(plan.Cells)) {
			c := &plan.Cells[i]
			noise := math.Exp(s.noise * rng.NormFloat64())
			s.one(t, run, c, block, at, common*noise)
			at = at.Add(time.Minute)
		}
	}
	must(t, run.Event(record.Event{At: at, Kind: "phase", What: "run ends"}))
	must(t, run.Close())
	return dir
}

func (s syncTruth) one(t testing.TB, run *record.Run, c *experiment.Cell, block int, epoch time.Time, pace float64) {
	w, err := run.Begin(c.ID, block, false, epoch)
	must(t, err)
	trial, ops, marks := s.made(c, block, pace)
	must(t, w.Ops(ops))
	must(t, w.Marks(marks))
	must(t, w.End(trial))
}

// made is one trial of a cell.
func (s syncTruth) made(c *experiment.Cell, block int, pace float64) (record.Trial, []record.Op, []record.Mark) {
	d := c.Sync
	if s.truth == nil {
		s.truth = syncTruthOf
	}
	serve := s.truth(c) * pace
	f := newcomer{first: syncFirst, serve: serve, height: 1}
	f.chain = f.first + (serve-f.first)*0.9
	for i := range d.Peers {
		f.peers = append(f.peers, syncPeer{blocks: float64(d.Blocks) / float64(d.Peers),
			rate: float64(c.Link.Rate), name: fmt.Sprintf("peer-%d", i+1)})
	}
	if s.node != nil {
		s.node(c, block, &f)
	}
	ns := func(sec float64) int64 { return int64(sec * 1e9) }
	op := func(kind record.OpKind, end float64, bytes float64) record.Op {
		o := record.Op{Kind: kind, Length: syncBytes, Bytes: int64(bytes), Outcome: f.outcome, Class: f.class,
			LastByte: ns(end)}
		if f.height > 0 {
			o.FirstByte = ns(f.first)
		}
		return o
	}
	ops := []record.Op{op(record.OpSync, f.chain, syncBytes), op(record.OpServe, f.serve, syncBytes)}
	if f.outcome != record.OK {
		ops = []record.Op{op(record.OpSync, f.serve, syncBytes*f.height),
			op(record.OpServe, f.serve, syncBytes*f.height)}
	}
	// Blocks come at an even rate.
	var marks []record.Mark
	before, end := 0.0, f.chain
	if f.outcome != record.OK {
		end = f.serve
	}
	for p := 0; p <= int(math.Round(100*f.height)); p++ {
		moment := f.first + (end-f.first)*float64(p)/(100*f.height)
		height := max(1, int64(float64(p)/100*float64(d.Blocks)))
		marks = append(marks, record.Mark{Before: time.Duration(ns(before)),
			Start: time.Duration(ns(moment)) - time.Millisecond, End: time.Duration(ns(moment)), Verified: height,
			Written:  height,
			Received: int64(syncBytes * 1.06 * float64(p) / 100), Sent: -1, Peers: d.Peers})
		before = moment - 0.001
	}
	m := map[string]float64{"resolution": 0.05, "system_cpu": 3, "node_rss_peak": 9e7, "disk_written": 4e7,
		"write_amplification": 4e7 / syncBytes, "commits": 30, "peers_connected": float64(d.Peers),
		"replay": syncReplay, "replay_cpu": 2.2, "link_line": syncBytes * 8 / (float64(c.Link.Rate) * 0.949),
		"harness_cpu": 0.01, "emulator_cpu": 0.05, "box_cpu": 0.6, "others_busy": 0.01}
	if is(c, "sync.storage", "ram") {
		m["disk_written"], m["write_amplification"] = 0, 0
	}
	useful, timeouts, most := 0.0, 0.0, 0.0
	trial := record.Trial{Metrics: m, Seconds: f.serve + 1}
	for _, p := range f.peers {
		if p.blocks > 0 {
			useful++
		}
		most = max(most, p.blocks/float64(d.Blocks))
		timeouts += p.timeouts
		for kind, v := range map[string]float64{record.DetailPeerBlocks: p.blocks, record.DetailPeerRate: p.rate,
			record.DetailPeerManner: p.manner} {
			trial.Details = append(trial.Details, record.Detail{Kind: kind, Name: p.name, Value: v})
		}
	}
	m["useful_share"], m["timeouts"], m["rerequests"], m["peer_share_max"] = useful/float64(d.Peers), timeouts, timeouts,
		most
	m["line"] = max(m["link_line"], m["replay"])
	if f.height > 0 {
		m["first_block"] = f.first
	}
	m["ok_rate"] = 0
	if f.outcome == record.OK {
		m["ok_rate"] = 1
		m["sync_time"], m["chain_time"], m["net_time"], m["index_lag"] = f.serve, f.chain, f.serve-f.first,
			f.serve-f.chain
		m["block_rate"], m["byte_rate"] = float64(d.Blocks-1)/(f.chain-f.first), syncBytes/(f.chain-f.first)
		m["wire_bytes"], m["overhead"] = syncBytes*1.06, 1.06
		m["line_share"] = m["line"] / f.serve
	}
	if s.metrics != nil {
		s.metrics(c, m)
	}
	return trial, ops, marks
}

// syncPeer is what a fresh node got from one of its peers.
type syncPeer struct {
	name                           string
	blocks, timeouts, rate, manner float64
}
