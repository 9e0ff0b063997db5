package experiment

// Sync is the section of the scenario sync: a fresh node gets a chain of blocks
// from its peers. The first value of a list is what the node is compared with: the
// default; the others are what is tried.
type Sync struct {
	Blocks       int               `json:"blocks,omitempty" default:"3000" min:"2" max:"1000000" label:"blocks" doc:"Blocks of the chain, which is made once and kept."`
	Transactions int               `json:"transactions,omitempty" default:"10" min:"0" max:"2000" label:"transactions" doc:"Transactions in each block."`
	Form         string            `json:"form,omitempty" default:"v2" enum:"v1,v2" label:"form" doc:"Of blocks and transactions, for systems that have both."`
	Peers        int               `json:"peers,omitempty" default:"1" min:"1" max:"64" label:"peers" doc:"Peers that have the chain, each a process of its own behind a link of its own."`
	Speeds       Speeds            `json:"speeds,omitzero" zero:"link" label:"speeds" doc:"Rates at which the peers send."`
	Trouble      Troubles          `json:"trouble,omitempty" zero:"none" label:"trouble" doc:"Peers that are of little use. A list of groups is one level; a list of such lists, or with none in it, is a factor."`
	Storage      string            `json:"storage,omitempty" default:"disk" enum:"disk,ram" label:"storage" doc:"Where the fresh node has its store: on the disk, or on a RAM disk made for the trial."`
	Faults       Faults            `json:"faults,omitempty" zero:"none" label:"faults" doc:"What goes wrong, and when."`
	Vary         map[string]Varied `json:"vary,omitempty" doc:"Options of the systems as factors: each with a list of its values, the first the default, or, for options that change together, a name of your own with a list of named sets."`
	Options      map[string]string `json:"options,omitempty" yaml:"-"` // of a cell: those of the system that Vary chose, as in SystemUse.With
	Network      []string          `json:"network,omitempty" yaml:"-"` // of Options, those that a replay does not depend on
	Replay       bool              `json:"replay" default:"true" doc:"Validate the chain locally, without a network, for the load line."`
	Poll         Duration          `json:"poll" default:"auto" zero:"auto" min:"5ms" max:"10s" doc:"Interval at which the fresh node is asked how far it is, on an absolute schedule."`
}
