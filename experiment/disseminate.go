package experiment

// Disseminate is the section of the scenario disseminate: content spreads from
// s seeders to l leechers, who start together or come and go, with faults.
type Disseminate struct {
	Nodes      int      `json:"nodes,omitempty" default:"8" min:"2" max:"256" label:"nodes" doc:"Nodes of the swarm, seeders included. Each is a process of its own behind a link of its own."`
	Seeders    int      `json:"seeders,omitempty" default:"1" min:"1" max:"255" label:"seeders" doc:"Nodes that have the content from the beginning, chosen by the seed."`
	SeederSets int      `json:"seeder_sets" default:"0" min:"0" max:"10000" doc:"How many different choices of the seeders there are; repetitions take them in turn. 0: a new choice in each repetition."`
	Slow       Fraction `json:"slow,omitempty" default:"0%" label:"slow leechers" doc:"Share of the leechers, chosen by the seed, that have slower links."`
	SlowUp     BitRate  `json:"slow_up" default:"link" zero:"link" doc:"Rate at which slow leechers send."`
	SlowDown   BitRate  `json:"slow_down" default:"link" zero:"link" doc:"Rate at which slow leechers receive."`
	Join       Join     `json:"join,omitzero" zero:"together" label:"join" doc:"When leechers begin: together, at one barrier, in waves, or one by one."`
	Stay       Stay     `json:"stay" default:"forever" label:"stay" doc:"How long a leecher stays once it has everything and serves others."`
	Faults     Faults   `json:"faults,omitempty" zero:"none" label:"faults" doc:"What goes wrong, and when. A list of faults is one level; a list of such lists, or with none in it, is a factor."`
	Fresh      bool     `json:"fresh" default:"false" doc:"Start all nodes anew, on empty stores, before each trial. Else they live through all trials, and only the content of the trial before is removed."`
	Cache      string   `json:"cache" default:"warm" enum:"warm,cold" doc:"Whether the content is in the machine's page cache when the leechers begin: warm, as it was written a moment before, or cold, which needs root."`
	Poll       Duration `json:"poll" default:"auto" zero:"auto" min:"10ms" max:"10s" doc:"Interval at which all leechers are asked how far they are, on an absolute schedule; the same for all systems. auto: a hundredth of the cell's load line, but no more than 80 questions per second in all, and once a second at least."`
	Gate       Fraction `json:"gate" default:"none" zero:"none" doc:"Goal: how much longer than the baseline a system may take. none: the verdict compares with the baseline."`
}

// Leechers is how many nodes do not have the content from the beginning.
func (d *Disseminate) Leechers() int { return d.Nodes - d.Seeders }
