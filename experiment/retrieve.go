package experiment

// Retrieve is the section of the scenario retrieve.
type Retrieve struct {
	Concurrency int       `json:"concurrency,omitempty" default:"1" min:"1" max:"100000" label:"concurrency" doc:"Workers that each fetch one thing after the other (closed loop). Not used with arrivals."`
	Range       Bytes     `json:"range" default:"whole" zero:"whole" min:"1B" label:"range" doc:"Fetch ranges of this size, or whole objects."`
	Order       string    `json:"order" default:"random" enum:"random,aligned,sequential" label:"order" doc:"Where ranges begin: anywhere within the object, at multiples of their size, or one after the other."`
	Connections string    `json:"connections" default:"keep" enum:"keep,fresh" label:"connections" doc:"Keep connections open between requests, or dial for each request."`
	Receive     string    `json:"receive" default:"verify" enum:"verify,drop" label:"receive" doc:"Compare every byte received, or let the kernel drop them: cheaper, nothing compared, plain HTTP/1.1 only."`
	HTTP        string    `json:"http" default:"auto" enum:"auto,1.1,2" doc:"HTTP version. auto: 2 where the server offers it over TLS, else 1.1."`
	Arrivals    *Arrivals `json:"arrivals,omitempty" doc:"Open loop: requests arrive by themselves, however slow the answers are; latency counts from the intended start. Absent: closed loop."`
	Requests    int64     `json:"requests" default:"none" zero:"none" min:"1" doc:"A trial ends after this many requests. Of requests, bytes, duration and per_worker at least one must be given; the first reached ends the trial."`
	Bytes       Bytes     `json:"bytes" default:"none" zero:"none" doc:"No request begins once this many file bytes have been asked for; those under way are finished. Where the size of a request is known beforehand, every worker makes at least one."`
	Duration    Duration  `json:"duration" default:"none" zero:"none" min:"1ms" doc:"A trial ends after this time; operations under way count as in-flight."`
	PerWorker   int       `json:"per_worker" default:"none" zero:"none" min:"1" doc:"Requests of each worker; 1 is a single burst."`
}

// Arrivals is an open-loop arrival process.
type Arrivals struct {
	Process     string `json:"process" default:"constant" enum:"constant,poisson,ramp,steps" doc:"Evenly spaced; with exponential gaps; from rate to the rate of to over the duration of the trial; or in steps."`
	Rate        OpRate `json:"rate,omitempty" label:"arrivals" doc:"Arrival rate; the first rate of a ramp. Not used with steps."`
	To          OpRate `json:"to,omitempty" doc:"The last rate of a ramp."`
	Steps       []Step `json:"steps,omitempty" doc:"Rates and how long each is held, for steps."`
	MaxInFlight int    `json:"max_in_flight" default:"10000" min:"1" max:"100000" doc:"Requests under way at once; when more would be needed the generator is late and the trial says so."`
}

// Step is a rate held for a time.
type Step struct {
	Rate OpRate   `json:"rate" required:"true" doc:"Arrival rate."`
	For  Duration `json:"for" required:"true" min:"1ms" doc:"How long it is held."`
}
