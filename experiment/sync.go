package experiment

// Sync is the section of the scenario sync: a fresh node gets a chain of blocks
// from its peers. The first value of a list is what the node is compared with: the
// default; the others are what is tried.
type Sync struct {
	Blocks       int               `json:"blocks,omitempty" default:"3000" min:"2" max:"1000000" label:"blocks" doc:"Blocks of the chain, which is built once and kept."`
	Transactions int               `json:"transactions,omitempty" default:"10" min:"0" max:"2000" label:"transactions" doc:"Transactions in each block."`
	Form         string            `json:"form,omitempty" default:"v2" enum:"v1,v2" label:"form" doc:"Version of blocks and transactions, for systems that have both."`
	Peers        int               `json:"peers,omitempty" default:"1" min:"1" max:"64" label:"peers" doc:"Peers that have the chain, each a process behind its own link."`
	Speeds       Speeds            `json:"speeds,omitzero" zero:"link" label:"speeds" doc:"Rates at which the peers send."`
	Trouble      Troubles          `json:"trouble,omitempty" zero:"none" label:"trouble" doc:"Peers of little use. A list of groups is one level; a list of lists (or none) is a factor."`
	Storage      string            `json:"storage,omitempty" default:"disk" enum:"disk,ram" label:"storage" doc:"Store of the fresh node: the disk, or a RAM disk made for the trial."`
	Faults       Faults            `json:"faults,omitempty" zero:"none" label:"faults" doc:"What goes wrong, and when."`
	Vary         map[string]Varied `json:"vary,omitempty" doc:"Options of the systems as factors: each with its values (the first is the default), or a name of your own with named sets of options."`
	Options      map[string]string `json:"options,omitempty" yaml:"-"` // of a cell: those of the system that Vary chose, as in SystemUse.With
	Network      []string          `json:"network,omitempty" yaml:"-"` // of Options, those that a replay does not depend on
	Replay       bool              `json:"replay" default:"true" doc:"Validate the chain locally, without a network, for the load line."`
	Poll         Duration          `json:"poll" default:"auto" zero:"auto" min:"5ms" max:"10s" doc:"Interval at which the fresh node is asked for its progress."`
}
