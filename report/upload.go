package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// LoadTest is one trial of the scenarios upload and collect: what its polls and
// its jobs tell.
type LoadTest struct {
	Trial      int64  `json:"trial"`
	Cell       string `json:"cell"`
	System     string `json:"system"`
	Where      string `json:"where"` // the factors of its cell, and the repetition where there are several
	State      string `json:"state"` // "done", "running" or "failed"
	Seconds    Num    `json:"seconds"`
	Ended      string `json:"ended"`      // what ended it: an exit condition, or that all was done; empty: nothing yet
	Why        string `json:"why"`        // in words
	Sessions   int    `json:"sessions"`   // of ours
	CutOff     int    `json:"cut_off"`    // sessions of ours that ended without a word
	Downtime   Num    `json:"downtime"`   // seconds between sessions, in Seconds and in the bandwidths
	Unrecorded int64  `json:"unrecorded"` // attempts of which no operation is recorded, at least: they were cut off, or not yet written
	Crashes    int    `json:"crashes"`    // ends of the system's own processes
	Files      int64  `json:"files"`      // objects stored
	Bytes      Num    `json:"bytes"`      // of them: file bytes
	Absolute   Num    `json:"absolute"`   // bytes of the storage servers since it began
	// Bandwidth, in bytes per second over the whole test, and what the moments of
	// the polls leave open.
	FileRate     Estimate    `json:"file_rate"`
	AbsoluteRate Estimate    `json:"absolute_rate"`
	Contracts    Num         `json:"contracts"`     // at the end
	LatencyFirst Estimate    `json:"latency_first"` // of all calls of a poll: median of the first polls, and their range
	LatencyLast  Estimate    `json:"latency_last"`
	FirstOpen    Num         `json:"latency_first_open"` // share of those polls of which a call timed out: they took that long at least
	LastOpen     Num         `json:"latency_last_open"`
	Accept       Estimate    `json:"accept"`  // seconds to store an object: median, with its interval
	Durable      Estimate    `json:"durable"` // and to its full redundancy
	Objects      Objects     `json:"objects"`
	Polls        Polls       `json:"polls"`
	Money        *Money      `json:"money,omitempty"`
	Efficiency   *Efficiency `json:"efficiency,omitempty"`
	Breaks       []Break     `json:"breaks"`
	Stalls       []Stall     `json:"stalls"`
	Unnamed      *Unnamed    `json:"unnamed,omitempty"`
	Growth       []Growth    `json:"growth"`

	info     *Cell
	watch    *watch
	shelf    *shelf
	marks    []mark
	coding   coding
	link     map[string]Num // what its link can do, by the metric that says so
	currency string
	phases   []designPhase
	away     [][2]float64 // between sessions
}

// Objects counts what became of the objects of a load test.
type Objects struct {
	Set        int64 `json:"set"`      // in the data set, as far as the plan tells; 0: it does not
	Accepted   int64 `json:"accepted"` // durable ones too
	Durable    int64 `json:"durable"`
	NotDurable int64 `json:"not_durable"` // accepted for longer than an object may take, and still not durable
	Late       int64 `json:"late"`        // durable, and took longer
	Putting    int64 `json:"putting"`     // under way
	Waiting    int64 `json:"waiting"`     // for another attempt
	Failed     int64 `json:"failed"`
	Refused    int64 `json:"refused"`
	Unreadable int64 `json:"unreadable"`
	Missing    int64 `json:"missing"`
	Adopted    int64 `json:"adopted"`
	Retried    int64 `json:"retried"` // needed more than one attempt
	Attempts   int64 `json:"attempts"`
	Bytes      int64 `json:"bytes"`         // of those accepted
	Verified   int64 `json:"verified"`      // fetched at the end, and the same byte for byte
	Unverified int64 `json:"verify_failed"` // fetched at the end, and not the same or not to be had
}

// Polls counts the polls of a load test.
type Polls struct {
	N      int              `json:"n"`
	Every  Num              `json:"every"`         // seconds, median
	Missed int64            `json:"missed"`        // of the schedule
	Failed int64            `json:"failed"`        // calls that were not answered
	Bad    map[string]int64 `json:"bad,omitempty"` // readings that were absurd, by name
}

// mark is a moment worth a line in a figure.
type mark struct {
	at   float64
	kind string // "session", "fault", "exit"
	what string
}

// designPhase is a phase of a designed experiment: one quantity is raised, then
// the system is probed, with nothing else under way.
type designPhase struct {
	what     string  // "start", "files", "bytes", "idle"
	from, to float64 // seconds since the test began
	probed   float64 // the probe lasted until then
}

// load reads the polls and jobs of the trials.
func (r *Report) load(in *input) {
	r.Loads = []LoadTest{}
	latest := latestOf(in.trials)
	for i := range r.Trials {
		t := &r.Trials[i]
		if t.Warmup || t.State == record.Pending || t.State == record.Skipped || t.ID != latest[place{t.Cell, t.Block}] {
			continue
		}
		l, err := r.loadTest(in, t)
		if err != nil {
			in.err = err
			return
		}
		r.Loads = append(r.Loads, *l)
	}
	for i := range r.Loads {
		r.Loads[i].grow()
	}
}

func (r *Report) loadTest(in *input, t *Trial) (*LoadTest, error) {
	l := &LoadTest{Trial: t.ID, Cell: t.Cell, System: t.Info.System, Where: r.shape.where(t.Info), State: string(t.State), info: t.Info, Breaks: []Break{}, Growth: []Growth{}}
	if in.plan.Blocks > 1 {
		l.Where = strings.TrimPrefix(l.Where+", repetition "+strconv.Itoa(t.Block+1), ", ")
	}
	w, err := in.watched(t.ID)
	if err != nil {
		return nil, err
	}
	until := 0.0
	if n := len(w.end); n > 0 {
		until = w.end[n-1]
	}
	s, err := in.shelved(t.ID, t.Info.settle(), until)
	if err != nil {
		return nil, err
	}
	l.watch, l.shelf, l.coding = w, s, r.codingOf(l.System)
	if s.sparse {
		r.Notes = append(r.Notes, fmt.Sprintf("Of the %s objects of trial %d that were accepted, %s were drawn by their number for the times of objects, and for how many were stored when; counts and bytes of the whole test are of all.", count(s.count.Accepted), t.ID, count(int64(len(s.accepted)))))
	}
	l.link = map[string]Num{}
	for _, key := range []string{"bandwidth_line", "wait_line"} {
		l.link[key] = unknown
		if v, ok := t.Metrics[key]; ok {
			l.link[key] = Num(v)
		}
	}
	l.Objects = s.count
	l.Objects.Set = t.Info.objects()
	if n := t.Metrics["objects"]; n > 0 {
		l.Objects.Set = int64(n) // a directory's objects, a design's
	}
	// One that went missing has been stored again since: only the sessions counted it.
	l.Objects.Missing = max(l.Objects.Missing, int64(t.Metrics["missing"]))
	l.Objects.Verified, l.Objects.Unverified = int64(t.Metrics["verified"]), int64(t.Metrics["verify_failed"])
	if !l.settles() {
		l.Objects.NotDurable = 0
	}
	l.Polls = Polls{N: len(w.start), Every: Num(w.every()), Missed: w.missed, Bad: w.bad}
	for _, n := range w.failed {
		l.Polls.Failed += n
	}
	if l.Polls.N < 2 {
		l.Polls.Every = unknown
	}
	l.Seconds = Num(max(t.Seconds, s.last, until))
	if err := l.sessions(in, t); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	l.unrecorded(t)
	l.stored()
	l.stalled()
	l.latencies()
	for _, e := range in.events {
		if e.Trial == t.ID {
			w.baseline(collect.Before(e))
		}
	}
	l.currency = r.currencyOf(l.System, t)
	price, text := t.Info.price()
	l.Money = w.economy(l.currency, price, text, l.unpaid(), l.Files, float64(l.Bytes), l.months())
	l.efficient()
	l.check()
	return l, nil
}

// settles reports whether the system says when an object is durable.
func (l *LoadTest) settles() bool {
	return l.Objects.Durable > 0 || l.watch.tells(system.ReadUploads) || l.watch.tells(system.ReadRedundancyMin)
}

// settle is the time that an object of the cell may take to become durable.
func (c *Cell) settle() float64 {
	if c.plan.Upload == nil {
		return 0
	}
	return c.plan.Upload.Settle.Seconds()
}

// objects is the number of objects of a cell's data set; 0: only the set itself tells.
func (c *Cell) objects() int64 {
	d := c.plan.Data
	if c.plan.Upload == nil || d.Directory != "" || d.Trace != "" {
		return 0
	}
	return int64(d.Objects) * int64(max(d.Copies, 1))
}

// price is what the experiment says that a unit of the currency costs.
func (c *Cell) price() (p experiment.Price, text string) {
	switch {
	case c.plan.Upload != nil:
		text = c.plan.Upload.Price
	case c.plan.Collect != nil:
		text = c.plan.Collect.Price
	}
	p, _ = experiment.ParsePrice(text) // none is stated, or an older program took it: no price
	return p, text
}

func (w *watch) tells(name string) bool { return w.values[name] != nil }

// currencyOf is the currency that a system counts in.
func (r *Report) currencyOf(name string, t *Trial) string {
	for _, d := range t.Details {
		if d.Kind == "currency" {
			return d.Name
		}
	}
	if c := r.EnvironmentOf("systems." + name + ".currency"); c != "" {
		return c
	}
	switch r.use(name) {
	case "siad", "renterd":
		return "SC"
	case "mem":
		return "MEM"
	}
	return "units"
}

func (r *Report) use(name string) string {
	for _, s := range r.Systems {
		if s.Name == name {
			return s.Use
		}
	}
	return ""
}

// codingOf is how a system spreads its objects, by what it said of itself, its
// options, and what is known of its kind.
func (r *Report) codingOf(name string) (c coding) {
	var with map[string]string
	use, mode := r.use(name), ""
	for _, s := range r.Systems {
		if s.Name == name {
			with, mode = s.with, s.mode
		}
	}
	of := func(key string) int64 {
		v := r.EnvironmentOf("systems." + name + "." + key)
		if v == "" {
			v = with[key]
		}
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	a, b := int64(0), int64(0)
	said := r.EnvironmentOf("systems." + name + ".redundancy")
	if n, _ := fmt.Sscanf(said, "%d data + %d parity", &a, &b); n == 2 {
		c.needed, c.servers = a, a+b
	} else if n, _ := fmt.Sscanf(said, "%d of %d shards", &a, &b); n == 2 {
		c.needed, c.servers = a, b
	}
	switch use {
	case "siad":
		if !c.known() && of("data_pieces") > 0 {
			c.needed, c.servers = of("data_pieces"), of("data_pieces")+of("parity_pieces")
		}
	case "tahoe":
		if !c.known() {
			c.needed, c.servers = of("needed"), of("total")
		}
	}
	c.sector = of("sector")
	if c.sector == 0 {
		// What their builds have: siad is started with its dev constants only.
		switch {
		case use == "renterd", use == "siad" && mode == "attach":
			c.sector = 4 << 20
		case use == "siad":
			c.sector = 256 << 10
		}
	}
	if !c.known() {
		return coding{}
	}
	return c
}

// fresh reports whether nothing was stored when the first poll looked. One that
// looked after our first put tells that by the number of files only: no more than
// are ours.
func (l *LoadTest) fresh() bool {
	return l.empty(system.ReadFiles, system.ReadFileBytes, system.ReadAbsolute)
}

// unpaid reports whether nothing was paid for when the first poll looked, too.
// Files may be those of a bucket, as in renterd, where money is the whole node's:
// then the data in its contracts are somebody else's, and so is what they cost,
// and what contracts cost that were over by then.
func (l *LoadTest) unpaid() bool {
	return l.fresh() && l.empty(system.ReadContractBytes, system.ReadEnded)
}

// empty reports whether readings were zero at the first poll, or are told to be
// of our own.
func (l *LoadTest) empty(names ...string) bool {
	if l.info.plan.Upload == nil {
		return true // what was there is what is watched
	}
	for _, name := range names {
		v := l.watch.values[name]
		first, _ := edge(v)
		if first >= 0 && v[first] > 0 && (l.began() > l.watch.end[first] || !l.oursAt(first)) {
			return false
		}
	}
	return true
}

// oursAt reports whether a poll told of no more files than were ours by then,
// those under way included.
func (l *LoadTest) oursAt(poll int) bool {
	v := l.watch.values[system.ReadFiles]
	n, _ := l.shelf.by(l.watch.end[poll])
	return poll < len(v) && v[poll] <= float64(n+l.info.plan.Upload.Concurrency)
}

// since is the poll from which on what servers hold is counted, and what we had
// stored by then; −1: from nothing.
func (l *LoadTest) since(v []float64) (poll, files int, bytes float64) {
	first, _ := edge(v)
	if first < 0 || l.fresh() {
		return -1, 0, 0
	}
	files, bytes = l.shelf.by(l.watch.mid(first))
	return first, files, bytes
}

// began is when the first put did: nothing of ours was stored before.
func (l *LoadTest) began() float64 {
	if l.shelf.first > 0 {
		return l.shelf.first
	}
	at := math.Inf(1)
	for _, s := range l.shelf.accepted {
		if !math.IsNaN(s.took) {
			at = min(at, s.at-s.took)
		}
	}
	return at
}

// stored fills files, bytes, absolute bytes and the bandwidths over the whole test.
func (l *LoadTest) stored() {
	w := l.watch
	l.Files, l.Bytes, l.Absolute = l.Objects.Accepted, Num(l.Objects.Bytes), unknown
	l.FileRate, l.AbsoluteRate, l.Contracts = noEstimate, noEstimate, unknown
	if l.info.plan.Upload == nil {
		l.Bytes = unknown
		if v, at := latestAt(w.values[system.ReadFiles], len(w.start)-1); at >= 0 {
			l.Files = int64(v)
		}
		v := w.values[system.ReadFileBytes]
		if first, last := edge(v); first >= 0 {
			l.Bytes = Num(v[last])
			if last > first {
				l.FileRate = estimateBetween(w.rate(v, first, last))
			}
		}
	} else if from, to := l.storing(); len(l.shelf.accepted) > 0 && to > from {
		l.FileRate = Estimate{Value: l.Bytes / Num(to-from), Lo: unknown, Hi: unknown}
	}
	if v, at := latestAt(w.values[system.ReadContracts], len(w.start)-1); at >= 0 {
		l.Contracts = Num(v)
	}
	v := w.values[system.ReadAbsolute]
	if first, last := edge(v); first >= 0 {
		l.Absolute = Num(v[last])
		if !l.fresh() {
			l.Absolute -= Num(v[first])
		}
		l.AbsoluteRate = l.absoluteRate(v)
	}
	var accept, durable []float64
	for _, s := range l.shelf.accepted {
		if !math.IsNaN(s.took) {
			accept = append(accept, s.took)
		}
	}
	for _, s := range l.shelf.durable {
		durable = append(durable, s.took)
	}
	l.Accept, l.Durable = quartiles(accept), quartiles(durable)
}

// absoluteRate is the bandwidth of the servers over the same time as that of the
// files, as the trial's metric absolute_bandwidth counts it.
func (l *LoadTest) absoluteRate(v []float64) Estimate {
	w := l.watch
	first, last := edge(v)
	from, to := l.storing()
	if l.info.plan.Upload == nil || math.IsInf(from, 0) || !(to > from) {
		if last <= first || l.info.plan.Upload != nil {
			return noEstimate
		}
		return estimateBetween(w.rate(v, first, last))
	}
	var told []collect.Told
	for i, x := range v {
		if !math.IsNaN(x) {
			told = append(told, collect.Told{Start: w.start[i], End: w.end[i], Value: x})
		}
	}
	value, lo, hi, ok := collect.Rate(told, from, to)
	if !ok {
		return noEstimate
	}
	return estimateBetween(value, lo, hi)
}

// atMost reports whether the polls bound the bandwidth of the servers, and cannot tell it.
func (l *LoadTest) atMost() bool {
	return !l.AbsoluteRate.Value.Known() && l.AbsoluteRate.Hi.Known()
}

func estimateBetween(v, lo, hi float64) Estimate { return Estimate{Num(v), Num(lo), Num(hi)} }

// quartiles is a median with the range of its middle half.
func quartiles(v []float64) Estimate {
	if len(v) == 0 {
		return noEstimate
	}
	s := slices.Clone(v)
	slices.Sort(s)
	return Estimate{Num(middle(s)), Num(s[len(s)/4]), Num(s[len(s)-1-len(s)/4])}
}

// latencyPolls is how many polls tell the latency of the beginning and of the
// end: one in a hundred, at least these.
const latencyPolls = 5

// latencies fills the API's latency at the beginning and at the end.
func (l *LoadTest) latencies() {
	l.LatencyFirst, l.LatencyLast = noEstimate, noEstimate
	var known []int
	for i, v := range l.watch.latency {
		if !math.IsNaN(v) {
			known = append(known, i)
		}
	}
	n := max(latencyPolls, len(known)/100)
	if len(known) < 2*n {
		return
	}
	l.LatencyFirst, l.FirstOpen = l.latencyOf(known[:n])
	l.LatencyLast, l.LastOpen = l.latencyOf(known[len(known)-n:])
}

// latencyOf is the latency of some polls, and the share of them in which a call
// timed out: their time is the least that it would have taken.
func (l *LoadTest) latencyOf(polls []int) (Estimate, Num) {
	var all []float64
	open := 0
	for _, i := range polls {
		all = append(all, l.watch.latency[i])
		if l.watch.least[i] {
			open++
		}
	}
	return quartiles(all), Num(open) / Num(len(polls))
}

// efficient fills where the absolute bytes come from. File bytes and absolute
// bytes are seen at different moments of one poll: the interval is what that
// leaves open.
func (l *LoadTest) efficient() {
	w := l.watch
	v := w.values[system.ReadAbsolute]
	_, last := edge(v)
	if last < 0 || !(l.Absolute > 0) {
		return
	}
	e := &Efficiency{Value: noEstimate, Padding: unknown, Redundancy: unknown, Line: unknown, Sector: unknown, Needed: unknown, Servers: unknown,
		PerFile: unknown, Copies: unknown, MeanTold: unknown, HighestTold: unknown, Absolute: l.Absolute}
	defer func() { l.Efficiency = e }()
	if told, at := latestAt(w.values[system.ReadRedundancyMean], len(w.start)-1); at >= 0 {
		e.MeanTold = Num(told)
	}
	for _, told := range w.values[system.ReadRedundancyMax] {
		if !math.IsNaN(told) {
			e.HighestTold = highest(e.HighestTold, told)
		}
	}
	files := float64(l.Files)
	if l.info.plan.Upload == nil {
		e.Value.Value = l.Bytes / l.Absolute
	} else {
		lo, hi := l.onServers(last)
		if hi <= 0 {
			return
		}
		e.Value = Estimate{Num((lo+hi)/2) / l.Absolute, Num(lo) / l.Absolute, Num(hi) / l.Absolute}
		n, accepted := l.shelf.by(w.end[last])
		_, skip, base := l.since(v)
		share := min(1, (lo+hi)/2/(accepted-base)) // of what was accepted, on servers
		files = float64(n-skip) * share
		padded := l.padded(skip, n)
		if l.coding.sector > 0 && float64(l.Absolute) < 0.99*padded*share {
			l.coding = coding{} // another build, or packed objects: what is rounded up is not known
		}
		if l.coding.known() && padded > 0 && accepted > base {
			e.Needed, e.Servers = Num(l.coding.needed), Num(l.coding.servers)
			if l.coding.sector > 0 {
				e.Sector = Num(l.coding.sector)
			}
			e.Padding = Num((accepted - base) / padded)
			e.Redundancy = e.Value.Value / e.Padding
			e.Copies = 1 / e.Redundancy
			e.Line = e.Padding * e.Needed / e.Servers
		}
	}
	if files > 0 {
		e.PerFile = l.Absolute / Num(files)
	}
}

// padded are the bytes of the objects between two in whole sectors, once.
func (l *LoadTest) padded(from, to int) float64 {
	sum, kept := 0.0, len(l.shelf.accepted)
	each, _ := l.shelf.weight()
	for _, s := range l.shelf.accepted[min(kept, int(float64(from)/each)):min(kept, int(math.Round(float64(to)/each)))] {
		sum += float64(l.coding.padded(s.size))
	}
	return sum * each
}
