package experiment

// Upload is the section of the scenario upload: store a whole data set in a
// system, for as long as it takes. One trial is one load test; it survives any
// end of ours and goes on with `plimsoll resume`.
type Upload struct {
	Concurrency int      `json:"concurrency,omitempty" default:"5" min:"1" max:"1000" label:"uploads at a time" doc:"Objects under way at once."`
	Slot        string   `json:"slot" default:"auto" enum:"auto,accepted,durable" doc:"Until when an object is under way: until the system has accepted it, or until it has its full redundancy. auto: durable where the system says when it is, else accepted."`
	Until       string   `json:"until" default:"durable" enum:"accepted,durable" doc:"When all is done: every object accepted, or also at its full redundancy, where the system says so."`
	Settle      Duration `json:"settle" default:"1h" min:"1s" doc:"Time an object may take from accepted to durable before its slot is given to the next; it is looked at again at the end, all of them together for as long, and the report says how many never were."`
	Retries     int      `json:"retries" default:"3" min:"0" max:"1000" doc:"How often an object that failed is tried again before it is given up."`
	Backoff     Duration `json:"backoff" default:"1s" min:"1ms" doc:"Pause before the first retry; each further one is five times as long, up to ten minutes."`
	Poll        Duration `json:"poll" default:"1m" min:"100ms" doc:"Interval at which the system is asked how it is: contracts, files, money, storage. On an absolute schedule. An answer is waited for during ten intervals, for ten minutes at least and an hour at most."`
	Verify      Fraction `json:"verify" default:"0%" doc:"Share of the stored objects that are fetched and compared at the end, chosen by the seed. Fetching costs money on systems that are paid."`
	After       string   `json:"after" default:"keep" enum:"keep,remove" doc:"What happens in an attached system to the stored objects when the test is done: they stay, or are removed where the system can. An interrupted test removes nothing; one that an exit condition ended does."`
	Need        Need     `json:"need" doc:"What must hold before the first upload."`
	Price       string   `json:"price,omitempty" form:"price" doc:"What one unit of the system's currency costs, with its date or source, such as \"0.014 USD (2018-06-01)\": the report states costs in it, too."`
}

// Need is what must hold before a load test begins: waited for, then refused.
type Need struct {
	Balance   string   `json:"balance,omitempty" form:"money" doc:"Money that can be spent, at least, in the system's currency: 500."`
	Contracts int      `json:"contracts" default:"0" min:"0" max:"100000" doc:"Contracts with servers, at least."`
	Allowance string   `json:"allowance,omitempty" form:"budget" doc:"Set the system's budget to this amount of its currency, or to its whole balance: all. Only with allow: [spend]."`
	Wait      Duration `json:"wait" default:"30m" min:"1s" doc:"Time to wait until the system is synced, unlocked and has its contracts."`
}

// Collect is the section of the scenario collect: nothing but polls, for as long
// as it is let. It is what `plimsoll collect` runs.
type Collect struct {
	Every Duration `json:"every" default:"1m" min:"100ms" doc:"Interval of the polls, on an absolute schedule."`
	For   Duration `json:"for" default:"none" zero:"none" doc:"How long. none: until it is interrupted, or an exit condition fires."`
	Price string   `json:"price,omitempty" form:"price" doc:"What one unit of the system's currency costs, with its date or source."`
}

// LoadTest reports whether the experiment is one whose single trial goes on for
// as long as it takes.
func (e *Experiment) LoadTest() bool { return e.Scenario == "upload" || e.Scenario == "collect" }

// Price is what one unit of a system's currency costs; empty where it is not said.
func (e *Experiment) Price() string {
	switch {
	case e.Upload != nil:
		return e.Upload.Price
	case e.Collect != nil:
		return e.Collect.Price
	}
	return ""
}
