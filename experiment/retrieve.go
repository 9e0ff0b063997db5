package experiment

// Retrieve is the section of the scenario retrieve.
type Retrieve struct {
	Concurrency int       `json:"concurrency,omitempty" default:"1" min:"1" max:"100000" label:"concurrency" doc:"Workers that each fetch one thing after another (closed loop). Not with arrivals."`
	Range       Bytes     `json:"range" default:"whole" zero:"whole" min:"1B" label:"range" doc:"Fetch ranges of this size, or whole objects."`
	Order       string    `json:"order" default:"random" enum:"random,aligned,sequential" label:"order" doc:"Where ranges begin: anywhere, at multiples of their size, or one after another."`
	Connections string    `json:"connections" default:"keep" enum:"keep,fresh" label:"connections" doc:"Keep connections, or dial for each request."`
	Receive     string    `json:"receive" default:"verify" enum:"verify,drop" label:"receive" doc:"Compare every byte, or let the kernel drop them: cheaper, plain HTTP/1.1 only."`
	HTTP        string    `json:"http" default:"auto" enum:"auto,1.1,2" doc:"HTTP version. auto: 2 if the server offers it over TLS, else 1.1."`
	Arrivals    *Arrivals `json:"arrivals,omitempty" doc:"Open loop: requests arrive regardless of the answers; latency counts from the intended start."`
	Requests    int64     `json:"requests" default:"none" zero:"none" min:"1" doc:"End a trial after so many requests. One of requests, bytes, duration and per_worker is required; the first reached ends the trial."`
	Bytes       Bytes     `json:"bytes" default:"none" zero:"none" doc:"Begin no request after so many file bytes were asked for; every worker makes at least one."`
	Duration    Duration  `json:"duration" default:"none" zero:"none" min:"1ms" doc:"End a trial after this time; operations under way count as in-flight."`
	PerWorker   int       `json:"per_worker" default:"none" zero:"none" min:"1" doc:"Requests of each worker; 1 is a single burst."`
}

// Arrivals is an open-loop arrival process.
type Arrivals struct {
	Process     string `json:"process" default:"constant" enum:"constant,poisson,ramp,steps" doc:"Evenly spaced; exponential gaps; from rate to the rate of to over the trial; or steps."`
	Rate        OpRate `json:"rate,omitempty" label:"arrivals" doc:"Arrival rate; of a ramp, the first. Not with steps."`
	To          OpRate `json:"to,omitempty" doc:"Last rate of a ramp."`
	Steps       []Step `json:"steps,omitempty" doc:"Rates and how long each is held."`
	MaxInFlight int    `json:"max_in_flight" default:"10000" min:"1" max:"100000" doc:"Requests at once; if more are needed, the trial is marked as late."`
}

// Step is a rate held for a time.
type Step struct {
	Rate OpRate   `json:"rate" required:"true" doc:"Arrival rate."`
	For  Duration `json:"for" required:"true" min:"1ms" doc:"How long it is held."`
}
