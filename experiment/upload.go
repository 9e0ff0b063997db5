package experiment

// Upload is the section of the scenario upload: store a whole data set in a system, for as long as
// it takes. One trial is one load test; if Plimsoll ends for any reason, `plimsoll resume`
// continues the test.
type Upload struct {
	// Objects under way at once: each until it is at full redundancy, where the system reports that.
	Concurrency int `json:"concurrency,omitempty" default:"5" min:"1" max:"1000" label:"uploads at a time"`
	// The test is done when every object is accepted, or also at full redundancy where the system reports it.
	Until string `json:"until" default:"durable" enum:"accepted,durable"`
	// Time from accepted to durable before an object counts as under way no longer; it is measured with
	// until: accepted, too. With until: durable, late objects are looked at again at the end for as long.
	Settle Duration `json:"settle" default:"1h" min:"1s"`
	// How often a failed object is tried again.
	Retries int `json:"retries" default:"3" min:"0" max:"1000"`
	// Pause before the first retry; each further one is five times as long, up to ten minutes.
	Backoff Duration `json:"backoff" default:"1s" min:"1ms"`
	// Interval of the polls of contracts, files, money and storage.
	Poll Duration `json:"poll" default:"1m" min:"100ms"`
	// Share of the stored objects, chosen by the seed, that are fetched and compared at the end. Paid systems
	// charge for it.
	Verify Fraction `json:"verify" default:"0%"`
	// Leave stored objects on an attached system, or remove them when the test is done or met an exit condition.
	After string `json:"after" default:"keep" enum:"keep,remove"`
	// What must hold before the first upload.
	Need Need `json:"need"`
	// Price of one unit of the system's currency, with date or source, such as "0.014 USD (2018-06-01)"; the report
	// then converts costs.
	Price PriceText `json:"price,omitempty"`
}

// Need holds conditions for a load test to begin: it waits for them, and fails if they are not met
// in time.
type Need struct {
	// Money available, at least, in the system's currency: 500.
	Balance Money `json:"balance,omitempty"`
	// Contracts with servers, at least.
	Contracts int `json:"contracts" default:"0" min:"0" max:"100000"`
	// Time for the system to be synced, unlocked and have its contracts.
	Wait Duration `json:"wait" default:"30m" min:"1s"`
}

// Collect is the section of the scenario collect, which only polls, until its end. `plimsoll
// collect` runs it.
type Collect struct {
	// Interval of the polls.
	Every Duration `json:"every" default:"1m" min:"100ms"`
	// How long. none: until interrupted, or until an exit condition is met.
	For Duration `json:"for" default:"none" zero:"none"`
	// Price of one unit of the system's currency, with date or source.
	Price PriceText `json:"price,omitempty"`
}

// LoadTest reports whether the experiment has a single trial that takes as long as necessary.
func (e *Experiment) LoadTest() bool { return e.Scenario == "upload" || e.Scenario == "collect" }

// leastWork is a lower bound of the time to store an object besides link and round trip, in
// seconds: less than any storage system needs.
const leastWork = 0.001

// estimateUpload returns the least time to store the data set: all its bytes at the link's rate, or
// a round trip and leastWork for each object, divided by the concurrency. What a system takes
// beyond that is the subject of the test.
func estimateUpload(c *Cell, goodput float64) CellEstimate {
	if !c.Data.Known() {
		return CellEstimate{Bound: Unknown}
	}
	objects, bytes := c.Data.Total()
	workers := float64(c.Upload.Concurrency)
	took := c.operation(workers, 1, leastWork, bytes/objects, goodput)
	return CellEstimate{Seconds: objects / workers * took, Bytes: bytes, Operation: took, Bound: AtLeast}
}
