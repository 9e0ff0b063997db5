// Package option describes the options of systems, for the parser of experiment files and for the
// code that starts systems.
package option

// Option is one key of `with:`.
type Option struct {
	Name     string
	Type     string // "string", "int", "bool", "size", "duration", "enum", "strings" (one per line)
	Enum     []string
	Default  string
	Min, Max int64 // for "int", "size" and "duration"; Max 0: no limit. The system checks them
	Power    bool  // must be a power of two
	Required bool
	Secret   bool // never recorded; the value is the name of an environment variable
	Network  bool // affects only the network or peers, so not the validation of a chain without them
	Help     string
}
