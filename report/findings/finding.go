// Package findings says what is worth knowing of a run: small rules, each in a
// file of its own, that look at figures already computed and say nothing when
// they have no evidence. A rule knows neither run directories nor the page; the
// package report hands it what it looks at.
package findings

// Tone colours a verdict or a finding; it repeats what the words say.
type Tone string

const (
	Good    Tone = "good"
	Neutral Tone = "neutral"
	Warn    Tone = "warn"
	Bad     Tone = "bad"
)

// Finding is one thing worth knowing, with the numbers that show it.
type Finding struct {
	Rule     string   `json:"rule"` // name, unique among the rules
	Tone     Tone     `json:"tone"`
	Title    string   `json:"title"`
	Text     string   `json:"text"`
	Evidence []string `json:"evidence,omitempty"` // figures with their n and intervals, one cell each
	Try      string   `json:"try,omitempty"`      // what to do or to measure next

	Subjects []string `json:"-"` // systems that a shared title names
}
