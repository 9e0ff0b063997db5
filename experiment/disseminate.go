package experiment

// Disseminate is the section of the scenario disseminate: content spreads from
// s seeders to l leechers, who start together or come and go, with faults.
type Disseminate struct {
	Nodes      int      `json:"nodes,omitempty" default:"8" min:"2" max:"256" label:"nodes" doc:"Nodes of the swarm, seeders included; each a process behind its own link."`
	Seeders    int      `json:"seeders,omitempty" default:"1" min:"1" max:"255" label:"seeders" doc:"Nodes that start with the content, chosen by the seed."`
	SeederSets int      `json:"seeder_sets" default:"0" min:"0" max:"10000" doc:"Number of different choices of seeders, used in turn. 0: a new choice in each repetition."`
	Slow       Fraction `json:"slow,omitempty" default:"0%" label:"slow leechers" doc:"Share of the leechers, chosen by the seed, with slower links."`
	SlowUp     BitRate  `json:"slow_up" default:"link" zero:"link" doc:"Rate at which slow leechers send."`
	SlowDown   BitRate  `json:"slow_down" default:"link" zero:"link" doc:"Rate at which slow leechers receive."`
	Join       Join     `json:"join,omitzero" zero:"together" label:"join" doc:"When leechers start: together, in waves, or one by one."`
	Stay       Stay     `json:"stay" default:"forever" label:"stay" doc:"How long a leecher that has everything stays and serves."`
	Faults     Faults   `json:"faults,omitempty" zero:"none" label:"faults" doc:"What goes wrong, and when. A list of faults is one level; a list of lists (or none) is a factor."`
	Fresh      bool     `json:"fresh" default:"false" doc:"Start all nodes anew, with empty stores, before each trial."`
	Poll       Duration `json:"poll" default:"auto" zero:"auto" min:"10ms" max:"10s" doc:"Interval at which leechers are asked for their progress. auto: 1% of the load line; at most 80 questions per second in all, at least one."`
	Gate       Fraction `json:"gate" default:"none" zero:"none" doc:"Goal: how much longer than the baseline a system may take. none: the verdict compares with the baseline."`
}

// Leechers is how many nodes do not have the content from the beginning.
func (d *Disseminate) Leechers() int { return d.Nodes - d.Seeders }
