package experiment

// Retrieve is the section of the scenario retrieve.
type Retrieve struct {
	// Workers that each fetch one thing after another (closed loop). Not with arrivals.
	Concurrency int `json:"concurrency,omitempty" default:"1" min:"1" max:"100000" label:"concurrency"`
	// Fetch ranges of this size, or whole objects.
	Range Bytes `json:"range" default:"whole" zero:"whole" min:"1B" label:"range"`
	// Where ranges begin: anywhere, at multiples of their size, or one after another.
	Order string `json:"order" default:"random" enum:"random,aligned,sequential" label:"order"`
	// Keep connections, or dial for each request.
	Connections string `json:"connections" default:"keep" enum:"keep,fresh" label:"connections"`
	// Compare every byte, or let the kernel drop them: cheaper, plain HTTP/1.1 only.
	Receive string `json:"receive" default:"verify" enum:"verify,drop" label:"receive"`
	// HTTP version. auto: 2 if the server offers it over TLS, else 1.1.
	HTTP string `json:"http" default:"auto" enum:"auto,1.1,2"`
	// Open loop: requests arrive regardless of the answers; latency counts from the intended start.
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// End a trial after so many requests. One of requests, bytes, duration and per_worker is required; the first reached
	// ends the trial.
	Requests int64 `json:"requests" default:"none" zero:"none" min:"1"`
	// Begin no request after so many file bytes were asked for; every worker makes at least one.
	Bytes Bytes `json:"bytes" default:"none" zero:"none"`
	// End a trial after this time; operations under way count as in-flight.
	Duration Duration `json:"duration" default:"none" zero:"none" min:"1ms"`
	// Requests of each worker; 1 is a single burst.
	PerWorker int `json:"per_worker" default:"none" zero:"none" min:"1"`
}

// Arrivals is an open-loop arrival process.
type Arrivals struct {
	// Evenly spaced; exponential gaps; from rate to the rate of to over the trial; or steps.
	Process string `json:"process" default:"constant" enum:"constant,poisson,ramp,steps"`
	// Arrival rate; of a ramp, the first. Not with steps.
	Rate OpRate `json:"rate,omitempty" label:"arrivals"`
	// Last rate of a ramp.
	To OpRate `json:"to,omitempty"`
	// Rates and how long each is held.
	Steps []Step `json:"steps,omitempty"`
	// Requests at once; if more are needed, the trial is marked as late.
	MaxInFlight int `json:"max_in_flight" default:"10000" min:"1" max:"100000"`
}

// Step is a rate held for a time.
type Step struct {
	// Arrival rate.
	Rate OpRate `json:"rate" required:"true"`
	// How long it is held.
	For Duration `json:"for" required:"true" min:"1ms"`
}
