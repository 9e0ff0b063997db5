// Package report turns a run directory into something a person or a machine can
// read: one page, a terminal table, CSV, Parquet, JSON and the Go benchmark
// format. It reads run directories only: no daemon, no network, no clock, so the
// same directory gives the same report years later.
//
// The trial is the unit of every statistic: requests within a trial are
// summarised by the recorder first, and the numbers here are medians over valid
// trials. Warm-up trials and invalid trials stay visible and stay out.
package report

import (
	"encoding/json"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/system"
)

// Format is the version of the summary's JSON schema (docs/results.md).
const Format = 1

// Confidence is the level of every interval in a report.
const Confidence = 0.95

// EffectFloor is the smallest change of a ratio that a verdict speaks of.
const EffectFloor = findings.EffectFloor

// Report is everything a run directory says, ready to be written. Its JSON is
// the run's summary.json.
type Report struct {
	Format      int             `json:"format"`
	Scenario    string          `json:"scenario"`
	Title       string          `json:"title"`
	Question    string          `json:"question"`
	Description string          `json:"description,omitempty"`
	Answer      []Answer        `json:"answer"`
	Verdict     Verdict         `json:"verdict"`
	Run         Run             `json:"run"`
	Baseline    string          `json:"baseline,omitempty"`
	Systems     []System        `json:"systems"`
	Metrics     []record.Metric `json:"metrics"`
	Findings    []Finding       `json:"findings"`
	Gates       []Ruling        `json:"gates,omitempty"` // rules of the plan, and the scenario's goal
	Notes       []string        `json:"notes"`
	LoadLine    string          `json:"load_line,omitempty"`
	Overall     []Overall       `json:"overall"`
	Cells       []Cell          `json:"cells"`
	Fits        []Fit           `json:"fits,omitempty"` // of the scenario overhead, like those that follow
	Phases      []PhaseCost     `json:"phases,omitempty"`
	Memory      []Memory        `json:"memory,omitempty"`
	Trends      []Trend         `json:"trends,omitempty"`
	Loads       []LoadTest      `json:"loads,omitempty"`  // of the scenarios upload and collect
	Swarms      []Swarm         `json:"swarms,omitempty"` // of the scenario disseminate
	Syncs       []Synced        `json:"syncs,omitempty"`  // of the scenario sync, like those that follow
	Tunings     []Tuning        `json:"tunings,omitempty"`
	Shapes      []NumberShape   `json:"shapes,omitempty"`
	Invalid     []InvalidTrial  `json:"invalid"`
	Skipped     []SkippedCell   `json:"skipped"`
	Links       []Link          `json:"links"`
	Environment []Pair          `json:"environment"`

	Hero    *Figure         `json:"-"` // the picture of the first screen
	Figures []Figure        `json:"-"`
	left    []LeftOut       // figures
	Trials  []Trial         `json:"-"`
	Plan    json.RawMessage `json:"-"`

	imported   *experiment.Imported // nil: executed by this program
	lens       lens
	shape      shape
	link       string                     // in words
	dir        string                     // name of the run directory
	headline   string                     // the metric that verdicts speak of
	lives      []findings.Life            // of the systems' processes, where the run is long enough
	moving     []findings.Moving          // when something moved, of each cell whose requests follow one another
	held       []string                   // rules of the plan
	resumed    []time.Time                // when sessions after the first began
	checks     map[int64]record.LinkCheck // of shaped links, by trial
	inlines    map[task]*Inline           // of the operations that have sizes which never cross the link
	falls      []findings.Fall            // throughput that falls with concurrency
	loadCurves map[string]int             // of throughput against concurrency, by system
	swarms     map[int64]*spread          // what trials of the scenario disseminate recorded of their nodes, by trial

	syncs     map[int64]*following         // what trials of the scenario sync recorded of their fresh node, by trial
	factors   []syncFactor                 // that vary in a run of it
	walks     []record.Search              // nil: all combinations were to be executed
	constants map[string][]system.Constant // in the code of the systems, by system
}

// Answer is what the run says of one system.
type Answer struct {
	System string `json:"system"`
	Text   string `json:"text"`
}

// Tone colours a verdict or a finding.
type Tone = findings.Tone

const (
	Good    = findings.Good
	Neutral = findings.Neutral
	Warn    = findings.Warn
	Bad     = findings.Bad
)

// Verdict is the one sentence to remember.
type Verdict struct {
	Text string `json:"text"`
	Tone Tone   `json:"tone"`
}

// Run says what was executed.
type Run struct {
	PlanHash string    `json:"plan_hash"`
	Seed     uint64    `json:"seed"`
	State    string    `json:"state"`             // "complete", "partial", "running"
	Stopped  string    `json:"stopped,omitempty"` // the exit condition that ended it early
	Started  time.Time `json:"started,omitzero"`
	Seconds  float64   `json:"seconds"` // sum over trials, warm-up included
	Planned  int       `json:"planned"` // trials of the plan, warm-up not counted
	Done     int       `json:"done"`
	Valid    int       `json:"valid"`
	Invalid  int       `json:"invalid"`
	Failed   int       `json:"failed"`
	Skipped  int       `json:"skipped"` // left out on purpose; not among Done
	Warmup   int       `json:"warmup"`
	// Operations of valid trials, and the file bytes that they carried.
	Operations int64 `json:"operations"`
}

// System is one system under test. Slot numbers its colour and mark; the
// baseline has slot 0.
type System struct {
	Name     string `json:"name"`
	Use      string `json:"use"`
	Baseline bool   `json:"baseline,omitempty"`
	Slot     int    `json:"slot"`

	with map[string]string // its options in the plan
	mode string            // "start" or "attach"
}

// Pair is a named value of the environment.
type Pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Finding is one thing worth knowing, with the numbers that show it.
type Finding = findings.Finding

// Factor is one varied setting of a cell.
type Factor struct {
	Path   string  `json:"path"`
	Label  string  `json:"label"`
	Value  string  `json:"value"`
	Number float64 `json:"number"`
	Unit   string  `json:"unit,omitempty"`
}

// Cell is one combination of factors with its statistics over valid trials.
type Cell struct {
	ID       string   `json:"id"`
	System   string   `json:"system"`
	Baseline bool     `json:"baseline,omitempty"`
	Group    string   `json:"group"` // equal for cells that differ only in system
	Factors  []Factor `json:"factors"`
	Planned  int      `json:"planned"`
	Valid    int      `json:"valid"`
	Invalid  int      `json:"invalid"`
	Failed   int      `json:"failed"`
	Skipped  int      `json:"skipped"` // left out on purpose, because they would take too long
	// Outcomes counts the operations of valid trials.
	Outcomes map[string]int64   `json:"outcomes"`
	Classes  map[string]int64   `json:"classes,omitempty"`
	Success  Proportion         `json:"success"`
	Metrics  map[string]Summary `json:"metrics"`
	// Ratios are to the baseline's cell of the same group, by metric.
	Ratios  map[string]Ratio `json:"ratios,omitempty"`
	Reasons map[string]int   `json:"reasons,omitempty"` // validity reasons of its invalid trials

	plan  experiment.Cell    // what is to be done in it
	never map[string]Summary // of metrics that half or more of the valid trials never came to
}

// Proportion is a share of operations with a Clopper–Pearson interval for as
// many independent operations as they are worth.
type Proportion struct {
	Of       int64 `json:"of"` // operations that finished: ok or failed by the server; of a load test its puts
	OK       int64 `json:"ok"`
	Value    Num   `json:"value"`
	Lo       Num   `json:"lo"`
	Hi       Num   `json:"hi"`
	Worth    int64 `json:"worth"`    // independent operations that they are worth, by the spread between trials
	Censored int64 `json:"censored"` // starved, deadline, in flight, cancelled: beside, not in, the share

	puts   bool // of a load test: only its puts are counted
	lumped bool // one trial holds most of the failures
}

// Summary is a metric over the valid trials of a cell.
type Summary struct {
	N      int `json:"n"`
	Median Num `json:"median"`
	// Lo and Hi bound the median with at least Confidence when Exact; with too
	// few trials for that they are the lowest and highest trial and Confidence
	// is what that range reaches.
	Lo         Num     `json:"lo"`
	Hi         Num     `json:"hi"`
	Confidence float64 `json:"confidence"`
	Exact      bool    `json:"exact"`

	values []float64
	blocks []int
	beyond int // trials whose value is only known to be larger than what was watched; not among values
}

// Ratio compares a cell with the baseline's cell of the same group.
type Ratio struct {
	N     int `json:"n"` // blocks in which both have a valid trial
	Value Num `json:"value"`
	Lo    Num `json:"lo"`
	Hi    Num `json:"hi"`
	// Confidence is that of Lo and Hi: at least Confidence of the report, less where
	// the range of the pairs stands in for an interval.
	Confidence float64 `json:"confidence"`
	P          Num     `json:"p"`      // Wilcoxon's signed-rank test over pairs, or Student's where Warn says so
	PHolm      Num     `json:"p_holm"` // over the comparisons of this metric
	Shown      bool    `json:"shown"`  // false: a difference is not shown ("~")
	Better     int     `json:"better"` // of the ratio, when shown and above the effect floor: 1 better, -1 worse, else 0
	Warn       string  `json:"warn,omitempty"`
}

// Overall is one system's ratio to the baseline over all its cells.
type Overall struct {
	System string `json:"system"`
	Metric string `json:"metric"`
	N      int    `json:"n"` // blocks
	Value  Num    `json:"value"`
	Lo     Num    `json:"lo"`
	Hi     Num    `json:"hi"`
	P      Num    `json:"p"` // signed-rank test over blocks
	Shown  bool   `json:"shown"`
	Better int    `json:"better"`
	// The groups where the ratio is lowest and highest.
	Least Extreme `json:"least"`
	Most  Extreme `json:"most"`
}

// Extreme is the group with an extreme ratio.
type Extreme struct {
	Where string `json:"where"`
	Value Num    `json:"value"`
}

// InvalidTrial is a trial that stays out of statistics.
type InvalidTrial struct {
	Trial   int64    `json:"trial"`
	Cell    string   `json:"cell"`
	System  string   `json:"system"`
	Where   string   `json:"where"`
	Block   int      `json:"block"`
	State   string   `json:"state"`
	Reasons []string `json:"reasons"`
	Error   string   `json:"error,omitempty"`
}

// SkippedCell is a cell that was left out of the plan on purpose, or with trials
// that were: neither invalid nor failed, they would have taken too long.
type SkippedCell struct {
	Cell   string `json:"cell"`
	System string `json:"system"`
	Where  string `json:"where"`
	Trials int    `json:"trials"` // 0: the whole cell, in the plan already
	Why    string `json:"why"`
}

// Link is a verified link, all checks of one kind of link together.
type Link struct {
	From       string   `json:"from"`
	To         string   `json:"to"`
	Where      string   `json:"where"` // the factors of the cells that use it
	Emulator   string   `json:"emulator"`
	Congestion string   `json:"congestion"`
	Checks     int      `json:"checks"`
	Off        int      `json:"off"`
	WantRTT    Num      `json:"want_rtt"`
	RTT        Num      `json:"rtt"`       // median over checks
	RTTWorst   Num      `json:"rtt_worst"` // of the check farthest from what was asked
	RTTP99     Num      `json:"rtt_p99"`   // highest
	WantRate   Num      `json:"want_rate"` // TCP payload, bit/s; 0: unlimited
	Rate       Num      `json:"rate"`      // median over checks
	RateWorst  Num      `json:"rate_worst"`
	WantLoss   Num      `json:"want_loss"`
	Loss       Num      `json:"loss"`         // null: not measured
	Lateness   Num      `json:"lateness_p99"` // highest of the emulator's own
	Tolerance  Num      `json:"tolerance"`
	Why        []string `json:"why,omitempty"`
}

// Trial is one execution with the cell it belongs to.
type Trial struct {
	record.Trial
	Info *Cell
}
