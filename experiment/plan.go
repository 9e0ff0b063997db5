package experiment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// PlanFormat is the version of the plan's format. oldestPlan is the oldest format from which
// reports can be made.
const (
	PlanFormat = 5
	oldestPlan = 2
)

// Plan is an experiment in its canonical form: with all defaults, and every cell written out. Files
// with the same meaning have the same plan and hash.
type Plan struct {
	Format     int        `json:"format"`
	Hash       string     `json:"hash"` // SHA-256 of the plan's JSON without this field, in hex
	Experiment Experiment `json:"experiment"`
	Cells      []Cell     `json:"cells"`
	Warmup     int        `json:"warmup"` // blocks executed before the measured ones
	Blocks     int        `json:"blocks"` // measured blocks, at most
	Estimate   Estimate   `json:"estimate"`
	// Imported is set if the run was not executed by Plimsoll.
	Imported *Imported `json:"imported,omitempty"`
}

// Cell is one combination of the levels of all factors, for one system.
type Cell struct {
	ID          string       `json:"id"` // "c001"
	System      string       `json:"system"`
	Baseline    bool         `json:"baseline,omitempty"`
	Factors     []Factor     `json:"factors"` // the system, then what varies, in the order of the format's reference
	Link        Link         `json:"link"`
	Data        Data         `json:"data"`
	Retrieve    *Retrieve    `json:"retrieve,omitempty"`
	Overhead    *Overhead    `json:"overhead,omitempty"`
	Upload      *Upload      `json:"upload,omitempty"`
	Collect     *Collect     `json:"collect,omitempty"`
	Disseminate *Disseminate `json:"disseminate,omitempty"`
	Sync        *Sync        `json:"sync,omitempty"`
	Estimate    CellEstimate `json:"estimate"` // of one trial
}

// Factor is one level of one factor.
type Factor struct {
	Path   string  `json:"path"`  // "retrieve.concurrency"; "system" for the system
	Label  string  `json:"label"` // "concurrency"
	Value  string  `json:"value"` // as in the file, canonical: "10MiB"
	Number float64 `json:"number,omitempty"`
	// of Number: "B", "bit/s", "s", "1/s", "ratio", "1"; empty when Value is a word
	Unit string `json:"unit,omitempty"`
}

// CellsOf returns the cells of a system.
func (p *Plan) CellsOf(system string) []Cell {
	return slices.DeleteFunc(slices.Clone(p.Cells), func(c Cell) bool { return c.System != system })
}

// Group returns a text that is equal for cells that differ only in the system: ratios to the
// baseline are taken within a group. It is empty if only the system varies.
func (c Cell) Group() string {
	var parts []string
	for _, f := range c.Factors {
		if f.Path != systemPath {
			parts = append(parts, f.Path+"="+f.Value)
		}
	}
	return strings.Join(parts, " ")
}

// systemPath is the path of the factor that every cell has.
const systemPath = "system"

// Estimate is the expected time and size of a run, roughly, from the links, sizes and bounds.
type Estimate struct {
	Trials  int     `json:"trials"` // warm-up included
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"` // file bytes
	Bound   Bound   `json:"bound,omitempty"`
}

// CellEstimate is the expected time and size of one trial of a cell.
type CellEstimate struct {
	// of the load alone; for a swarm, publishing and reading back are included
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"` // file bytes
	// seconds of one operation if all workers are busy; of a swarm without faults
	Operation float64 `json:"operation"`
	Bound     Bound   `json:"bound,omitempty"`
}

// Bound is the kind of number of an estimate.
type Bound string

const (
	Exact   Bound = ""         // as accurate as possible
	AtLeast Bound = "at least" // the system may take much longer
	Unknown Bound = "unknown"  // the data set is read when the run begins
	Open    Bound = "open"     // the trial continues until something ends it
)

// Imported describes a run that was not executed by Plimsoll but read from another program's
// records. Such a run has trials and a report like any other, but it can neither be resumed nor be
// repeated from its plan.
type Imported struct {
	Format string   `json:"format"` // of the source, in a few words
	From   []string `json:"from"`   // names of the files
	// Unknown lists what the source does not report but Plimsoll would have measured, in the words
	// of a report: "the links were not measured".
	Unknown []string `json:"unknown"`
	// Notes holds further information for readers about how the source was read.
	Notes []string `json:"notes,omitempty"`
}

// Import returns the plan of an imported run: its cells are those found, and blocks is the largest
// number of trials that any of them was to have.
func (p *Plan) Import(from Imported, found func(Cell) bool, blocks int) (*Plan, error) {
	imported := *p
	imported.Imported = &from
	imported.Blocks = blocks
	imported.Cells = slices.DeleteFunc(slices.Clone(p.Cells), func(c Cell) bool { return !found(c) })
	for i := range imported.Cells {
		imported.Cells[i].Estimate = CellEstimate{} // nothing is going to be executed
	}
	imported.Estimate = Estimate{Trials: len(imported.Cells) * blocks}
	return imported.seal()
}

// Marshal returns the plan as it is stored: JSON with the fields in the order of their types,
// sorted maps, and indentation for readers. The same plan always gives the same bytes.
func (p *Plan) Marshal() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // conditions contain < and &
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("plan: write: %w", err)
	}
	return b.Bytes(), nil
}

// LoadPlan reads the output of Marshal. It refuses another format and a plan whose hash does not
// match its content.
func LoadPlan(data []byte) (*Plan, error) { return readPlan(data, true) }

// ReadPlan reads a plan for reports. Unlike [LoadPlan] it accepts older formats, from oldestPlan
// on, unknown fields and any hash.
func ReadPlan(data []byte) (*Plan, error) { return readPlan(data, false) }

func readPlan(data []byte, strict bool) (*Plan, error) {
	p := &Plan{}
	var head struct {
		Format int    `json:"format"`
		Hash   string `json:"hash"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("plan: read: %w", err)
	}
	if oldest := cmp.Or(boolInt(strict)*PlanFormat, oldestPlan); head.Format < oldest || head.Format > PlanFormat {
		return nil, fmt.Errorf("plan: format %d, this program reads formats from %d to %d: use the version of plimsoll "+
			"that wrote it", head.Format, oldest, PlanFormat)
	}
	if now := sum(data, head.Hash); strict && now != head.Hash {
		return nil, fmt.Errorf("plan: its hash is %.12s, its content has %.12s: it was changed after it was made",
			head.Hash, now)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("plan: read: %w", err)
	}
	return p, nil
}

// sum returns the hash of a plan's text, with the hash in the text left out.
func sum(text []byte, hash string) string {
	text = append(bytes.TrimSpace(text), '\n')
	text = bytes.Replace(text, []byte(`"hash": "`+hash+`"`), []byte(`"hash": ""`), 1)
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// seal sets the hash of the plan and converts it to JSON and back, so that a new plan and a loaded
// plan are equal in every detail.
func (p *Plan) seal() (*Plan, error) {
	p.Hash = ""
	b, err := p.Marshal()
	if err != nil {
		return nil, err
	}
	hash := `"hash": "` + sum(b, "") + `"`
	return LoadPlan(bytes.Replace(b, []byte(`"hash": ""`), []byte(hash), 1))
}

// Assumptions of the estimates. The numbers are rough on purpose: a plan only has to distinguish
// minutes from days.
const (
	// tcpShare is the share of a link's rate on the wire that is payload: 1448 of the 1538 bytes
	// that a full segment takes on Ethernet (with TCP timestamps, preamble and gap).
	tcpShare = 1448.0 / 1538.0
	// unlimitedRate is assumed for a link without a limit, in bytes per second.
	unlimitedRate = 1e9
	// loadRate is the rate at which a started system stores its objects, in bytes per second.
	loadRate = 200e6
	// unknownSize is assumed for whole objects of unknown size, in bytes.
	unknownSize = 100 << 20
	// aroundTrial is the time that a trial takes besides its load, in seconds: the check of the
	// link, the probe of the server, the records.
	aroundTrial = 0.5
	// startSystem is the time to start one system, in seconds.
	startSystem = 2.0
)

// estimate sets the estimate of the plan from those of its cells.
func (p *Plan) estimate() {
	e := &p.Experiment
	var seconds, bytes float64
	bounds, uncertain := []Bound{Exact, AtLeast, Unknown, Open}, 0
	once := map[string]float64{} // preparations shared by cells, in seconds
	prepare := func(what string, takes float64) { once[what] = max(once[what], takes) }
	for _, c := range p.Cells {
		seconds += c.Estimate.Seconds
		bytes += c.Estimate.Bytes
		uncertain = max(uncertain, slices.Index(bounds, c.Estimate.Bound))
		if e.LoadTest() {
			continue // everything else is negligible
		}
		if s := c.Sync; s != nil {
			prepare(c.System, float64(s.Peers)*startNode)
			prepare(fmt.Sprint(c.System, s.Blocks, s.Transactions, s.Form), (makeWork+followWork)*s.work())
			continue
		}
		seconds += aroundTrial
		if d := c.Disseminate; d != nil {
			prepare(c.System, float64(d.Nodes)*startNode)
		} else if !e.System(c.System).Attached() {
			prepare(c.System, startSystem)
			if c.Retrieve != nil { // the other scenarios store little in advance
				prepare(c.System+c.Data.Key(), float64(c.Data.Objects)*float64(c.Data.Size)/loadRate)
			}
		}
	}
	blocks := float64(p.Warmup + p.Blocks)
	total := seconds * blocks
	for _, takes := range once {
		total += takes
	}
	p.Estimate = Estimate{Trials: len(p.Cells) * (p.Warmup + p.Blocks), Seconds: rounded(total),
		Bytes: math.Round(bytes * blocks), Bound: bounds[uncertain]}
}

// rounded rounds a number to three decimals.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }

func (e *Experiment) estimateCell(c *Cell) CellEstimate {
	rate := c.Link.UpRate() // in the direction of the cell's bytes
	if c.Stores() {
		rate = c.Link.DownRate()
	}
	goodput := cmp.Or(float64(rate)/8*tcpShare, unlimitedRate)
	var est CellEstimate
	switch {
	case c.Overhead != nil:
		est = estimateOverhead(c, goodput, e.Limits)
	case c.Upload != nil:
		est = estimateUpload(c, goodput)
	case c.Collect != nil:
		est = CellEstimate{Seconds: c.Collect.For.Seconds()}
		if c.Collect.For == 0 {
			est.Bound = Open
		}
	case c.Disseminate != nil:
		est = estimateDisseminate(c, e.Limits, e.System(c.System).SeedersOnly)
	case c.Sync != nil:
		est = e.estimateSync(c)
	case c.Retrieve.Arrivals != nil:
		est = openLoop(c.Retrieve, knownBytes(c), goodput)
	default:
		est = closedLoop(c, knownBytes(c), goodput, e.Limits)
	}
	est.Seconds = rounded(est.Seconds)
	est.Bytes = math.Round(est.Bytes)
	est.Operation = rounded(est.Operation)
	return est
}

// operation estimates the seconds of one operation of a number of workers that share the link: the longer
// of its latency (round trips, work, and its bytes alone on the link) and the time to transfer the
// bytes of all workers.
func (c *Cell) operation(workers, trips, work, bytes, goodput float64) float64 {
	return math.Max(work+trips*c.Link.RTT()+bytes/goodput, workers*bytes/goodput)
}

// unlimited returns +Inf for a rate or a bound that is 0.
func unlimited(x float64) float64 {
	if x > 0 {
		return x
	}
	return math.Inf(1)
}

// text formats the time and the bytes of an estimate for the user.
func (b Bound) text(seconds, bytes float64) (took, moved string) {
	took, moved = words.Span(seconds), words.Bytes(bytes)
	switch b {
	case AtLeast:
		took = "at least " + took
	case Unknown:
		took, moved = "unknown", "unknown"
	case Open:
		took = "until it ends"
	}
	return took, moved
}

// content returns the noun for the bytes of the plan.
func (p *Plan) content() string {
	if p.Experiment.Sync != nil {
		return "chain bytes"
	}
	return "file bytes"
}

// EstimateText returns the estimate in words: "2.7 s and 151 MB of file bytes", "at least 3 h 03
// min and …", or why there is none.
func (p *Plan) EstimateText() string {
	took, moved := p.Estimate.Bound.text(p.Estimate.Seconds, p.Estimate.Bytes)
	switch {
	case p.Estimate.Bound == Unknown:
		return "unknown: the data set is read when the run begins"
	case p.Estimate.Bytes == 0:
		return took
	}
	return took + " and " + moved + " of " + p.content()
}
