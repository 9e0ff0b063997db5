// Package option is what a system says of one of its options, to whom reads experiment files and to whom starts it.
package option

// Option is one key of `with:`.
type Option struct {
	Name     string
	Type     string // "string", "int", "bool", "size", "duration", "enum", "strings" (one per line)
	Enum     []string
	Default  string
	Min, Max int64 // of an "int", a "size" or a "duration"; Max 0: no limit. The system checks them
	Power    bool  // a power of two
	Required bool
	Secret   bool // never recorded; give the name of an environment variable
	Network  bool // concerns the network or the peers alone: validating a chain without them does not depend on it
	Help     string
}
