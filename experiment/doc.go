// Package experiment reads an experiment file and turns it into a plan.
//
// A file is YAML, read strictly: all mistakes are reported at once, each with its position and a
// hint. The struct tags of [Experiment], and the comments of its fields, are the only description
// of the format; decoding, defaults, the JSON Schema and the reference page are all derived from
// them:
//
//	json      the key, in the file and in the plan
//	default   the value if the key is missing, written as in the file
//	enum      the allowed words, comma-separated
//	min, max  the limits, written as in the file
//	zero      the word for the zero value ("auto", "none")
//	required  "true": the key must be given
//	label     the short name of a factor in tables
//
// A field with a label may be given as a list, which makes it a factor. The tag short on a blank
// field names the field that a bare value sets. Type field in this package lists the other tags.
package experiment
