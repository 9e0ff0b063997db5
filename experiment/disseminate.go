package experiment

// Disseminate is the section of the scenario disseminate: content spreads from
// s seeders to l leechers, who start together or come and go, with faults.
type Disseminate struct {
	Nodes      Axis[int]      `json:"nodes,omitempty" default:"8" min:"2" max:"256" label:"nodes" doc:"Nodes of the swarm, seeders included. Each is a process of its own behind a link of its own."`
	Seeders    Axis[int]      `json:"seeders,omitempty" default:"1" min:"1" max:"255" label:"seeders" doc:"Nodes that have the content from the beginning, chosen by the seed."`
	SeederSets int            `json:"seeder_sets" default:"0" min:"0" max:"10000" doc:"How many different choices of the seeders there are; repetitions take them in turn. 0: a new choice in each repetition."`
	Up         Axis[BitRate]  `json:"up,omitempty" default:"link" zero:"link" label:"up rate" doc:"Rate at which a node sends, where it differs from that at which it receives (link.rate)."`
	Slow       Axis[Fraction] `json:"slow,omitempty" default:"0%" label:"slow leechers" doc:"Share of the leechers, chosen by the seed, that have slower links."`
	SlowUp     BitRate        `json:"slow_up" default:"link" zero:"link" doc:"Rate at which slow leechers send."`
	SlowDown   BitRate        `json:"slow_down" default:"link" zero:"link" doc:"Rate at which slow leechers receive."`
	Join       Axis[string]   `json:"join,omitempty" default:"together" form:"join" label:"join" doc:"When leechers begin."`
	Stay       Axis[string]   `json:"stay,omitempty" default:"forever" form:"stay" label:"stay" doc:"How long a leecher stays once it has everything and serves others."`
	Faults     Axis[string]   `json:"faults,omitempty" default:"none" form:"faults" label:"faults" doc:"What goes wrong, and when."`
	Fresh      bool           `json:"fresh" default:"false" doc:"Start all nodes anew, on empty stores, before each trial. Else they live through all trials, and only the content of the trial before is removed."`
	Cache      string         `json:"cache" default:"warm" enum:"warm,cold" doc:"Whether the content is in the machine's page cache when the leechers begin: warm, as it was written a moment before, or cold, which needs root."`
	Poll       Duration       `json:"poll" default:"auto" zero:"auto" min:"10ms" max:"10s" doc:"Interval at which all leechers are asked how far they are, on an absolute schedule; the same for all systems. auto: a hundredth of the cell's load line, but no more than 80 questions per second in all, and once a second at least."`
	Gate       Fraction       `json:"gate" default:"none" zero:"none" doc:"Goal: how much longer than the baseline a system may take. none: the verdict compares with the baseline."`
}

// ResolvedDisseminate is a [Disseminate] with one value for each field.
type ResolvedDisseminate struct {
	Nodes      int      `json:"nodes"`
	Seeders    int      `json:"seeders"`
	SeederSets int      `json:"seeder_sets"`
	Up         BitRate  `json:"up"` // 0: link.rate
	Slow       Fraction `json:"slow"`
	SlowUp     BitRate  `json:"slow_up"`   // 0: as the others
	SlowDown   BitRate  `json:"slow_down"` // 0: as the others
	Join       string   `json:"join"`
	Stay       string   `json:"stay"`
	Faults     string   `json:"faults"`
	Fresh      bool     `json:"fresh"`
	Cache      string   `json:"cache"`
	Poll       Duration `json:"poll"` // 0: auto, see [Cell.PollEvery]
	Gate       Fraction `json:"gate"`
}

// Leechers is how many nodes do not have the content from the beginning.
func (d *ResolvedDisseminate) Leechers() int { return d.Nodes - d.Seeders }
