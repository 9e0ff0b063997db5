package experiment

// Catalog is what the caller knows of storage systems: the names allowed under
// `systems:` and the options allowed under `with:`.
type Catalog []SystemSpec

// SystemSpec describes one system that an experiment may use.
type SystemSpec struct {
	Name     string
	Modes    []string // "start", "attach"
	Options  []OptionSpec
	Summary  string // one line
	Baseline bool   // a raw baseline: no storage system, just bytes over the same link
	HTTP     bool   // its objects can be fetched over HTTP
	Spreads  bool   // its nodes can be a swarm; a raw baseline's pass nothing on that they fetched
	Follows  bool   // its nodes can follow a chain that their peers have
}

// OptionSpec describes one key of `with:`.
type OptionSpec struct {
	Name     string
	Type     string // "string", "int", "bool", "size", "duration", "enum", "strings"
	Enum     []string
	Default  string
	Required bool
	Secret   bool // the value is the name of an environment variable, never the secret
	Network  bool // it concerns the network or the peers alone: validating a chain without them does not depend on it
	Help     string
}

func (c Catalog) find(name string) *SystemSpec {
	for i := range c {
		if c[i].Name == name {
			return &c[i]
		}
	}
	return nil
}

func (c Catalog) names() []string {
	names := make([]string, len(c))
	for i := range c {
		names[i] = c[i].Name
	}
	return names
}

func (s *SystemSpec) option(name string) *OptionSpec {
	for i := range s.Options {
		if s.Options[i].Name == name {
			return &s.Options[i]
		}
	}
	return nil
}

// defaultText is the default as one would write it in a file.
func (o *OptionSpec) defaultText() string {
	switch o.Type {
	case "size":
		if b, err := ParseBytes(o.Default); err == nil {
			return b.String()
		}
	case "duration":
		var d Duration
		if d.parse(o.Default) == nil {
			return d.String()
		}
	}
	return o.Default
}
