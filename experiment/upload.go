package experiment

// Upload is the section of the scenario upload: store a whole data set in a
// system, for as long as it takes. One trial is one load test; it survives any
// end of ours and goes on with `plimsoll resume`.
type Upload struct {
	// Objects under way at once: each until it is at full redundancy, where the system reports that.
	Concurrency int `json:"concurrency,omitempty" default:"5" min:"1" max:"1000" label:"uploads at a time"`
	// The test is done when every object is accepted, or also at full redundancy where the system reports it.
	Until string `json:"until" default:"durable" enum:"accepted,durable"`
	// Time from accepted to durable before an object counts as under way no longer. At the end all are looked at again for as long.
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

// Need is what must hold before a load test begins: waited for, then refused.
type Need struct {
	// Money available, at least, in the system's currency: 500.
	Balance Money `json:"balance,omitempty"`
	// Contracts with servers, at least.
	Contracts int `json:"contracts" default:"0" min:"0" max:"100000"`
	// Time for the system to be synced, unlocked and have its contracts.
	Wait Duration `json:"wait" default:"30m" min:"1s"`
}

// Collect is the section of the scenario collect: nothing but polls, for as long
// as it is let. It is what `plimsoll collect` runs.
type Collect struct {
	// Interval of the polls.
	Every Duration `json:"every" default:"1m" min:"100ms"`
	// How long. none: until interrupted, or until an exit condition is met.
	For Duration `json:"for" default:"none" zero:"none"`
	// Price of one unit of the system's currency, with date or source.
	Price PriceText `json:"price,omitempty"`
}

// LoadTest reports whether the experiment is one whose single trial goes on for
// as long as it takes.
func (e *Experiment) LoadTest() bool { return e.Scenario == "upload" || e.Scenario == "collect" }

// leastWork is what storing an object takes at least beside link and round trip,
// in seconds: less than any system needs that keeps it.
const leastWork = 0.001

// estimateUpload is the least that storing the data set can take: all its bytes
// at the link's rate, or a round trip and leastWork for each object by as many at
// a time. What a system takes beyond that is what the test is to find out.
func estimateUpload(c *Cell, goodput float64) CellEstimate {
	if !c.Data.Known() {
		return CellEstimate{Bound: Unknown}
	}
	objects, bytes := c.Data.Total()
	workers := float64(c.Upload.Concurrency)
	est := c.operation(workers, 1, leastWork, bytes/objects, goodput)
	est.Seconds, est.Bytes, est.Bound = objects/workers*est.Operation, bytes, AtLeast
	return est
}
