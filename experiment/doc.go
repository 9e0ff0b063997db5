// Package experiment reads an experiment file and turns it into a plan.
//
// A file is YAML, read strictly: every mistake is reported at once, each with
// its place and a hint. The struct tags of [Experiment] are the only
// description of the format; decoding, defaults, the JSON Schema and the
// reference page are all made from them:
//
//	json      the key, in the file and in the plan
//	doc       one or two sentences for the reference page and for editors
//	default   the value when the key is absent, written as in the file
//	enum      the words allowed, comma-separated
//	min, max  the limits, written as in the file
//	zero      the word for the zero value ("auto", "none")
//	required  "true": the key must be given
//	label     the short name of a factor in tables
//
// A field with a label may be given as a list, which makes it a factor. The tag
// short on a blank field names the fields that a bare value sets.
package experiment
