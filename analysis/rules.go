package analysis

import (
	"slices"
	"strings"
	"text/template"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Tone colours a verdict or a finding; it repeats what the words say.
type Tone string

const (
	Good    Tone = "good"
	Neutral Tone = "neutral"
	Warn    Tone = "warn"
	Bad     Tone = "bad"
)

// Rank orders findings: what the reader must know first.
type Rank string

const (
	Unreliable Rank = "unreliable" // the numbers cannot be believed, or say something else than they seem to
	Failure    Rank = "failure"    // operations or nodes failed
	Slow       Rank = "slow"       // why it is slow
	Notable    Rank = "notable"    // worth knowing
)

// place is that of a rank in the order of findings.
func (r Rank) place() int { return slices.Index([]Rank{Unreliable, Failure, Slow, Notable}, r) }

// Rule is one thing that a run can have found: a condition over the frame, and the
// words for it.
type Rule struct {
	ID   string
	Rank Rank
	Tone Tone
	// Holds returns a case for each place where the condition holds; none: no finding.
	Holds func(*Result) []Case
	// Title and Each are templates, over [Hits] and over one [Case]. Each is a line of
	// evidence. Advice says what to do next; it is a template over Hits.
	Title, Each, Advice string
	// Replaces are rules of every scenario that this one of a view says better.
	Replaces []string
}

// Case is one place where a rule's condition holds. A rule fills what its words need.
type Case struct {
	System string
	Name   string // system and place
	N, Of  int64
	Range  // in Unit
	Limit  Num
	Unit   string
	Text   string
	Hint   string // what to do, where that depends on the case
}

// Hits are the cases of a rule in one run.
type Hits struct {
	Case         // the first, which the title may name
	Cases []Case // all
	Count int
	Total int64 // sum of N
}

// Systems are the names of the systems that the cases are of.
func (h Hits) Systems() string {
	return words.List(h.distinct(func(c Case) string { return c.System }))
}

// Texts are the different texts of the cases.
func (h Hits) Texts() string {
	return strings.Join(h.distinct(func(c Case) string { return c.Text }), "; ")
}

// Hints are the different hints of the cases.
func (h Hits) Hints() string {
	return strings.Join(h.distinct(func(c Case) string { return c.Hint }), " ")
}

func (h Hits) distinct(of func(Case) string) (all []string) {
	for _, c := range h.Cases {
		if s := of(c); s != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Finding is one thing worth knowing, with the numbers behind it.
type Finding struct {
	Rule     string   `json:"rule"`
	Tone     Tone     `json:"tone"`
	Title    string   `json:"title"`
	Advice   string   `json:"advice,omitempty"`
	Evidence []string `json:"evidence,omitempty"` // one line for each place
	Systems  []string `json:"systems,omitempty"`

	InVerdict bool `json:"-"` // the verdict says the same
}

// mostEvidence is how many lines of evidence a finding keeps.
const mostEvidence = 12

// find runs rules, in the order of their rank.
func (r *Result) find(rules []Rule) []Finding {
	var replaced []string
	for _, rule := range rules {
		replaced = append(replaced, rule.Replaces...)
	}
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule Rule) bool { return slices.Contains(replaced, rule.ID) })
	slices.SortStableFunc(rules, func(a, b Rule) int { return a.Rank.place() - b.Rank.place() })
	all := []Finding{}
	for _, rule := range rules {
		cases := rule.Holds(r)
		if len(cases) == 0 {
			continue
		}
		h := Hits{Case: cases[0], Cases: cases, Count: len(cases)}
		f := Finding{Rule: rule.ID, Tone: rule.Tone, Systems: h.distinct(func(c Case) string { return c.System })}
		for i, c := range cases {
			h.Total += c.N
			if rule.Each != "" && i < mostEvidence {
				f.Evidence = append(f.Evidence, Fill(rule.Each, c))
			}
		}
		f.Title, f.Advice = Fill(rule.Title, h), Fill(rule.Advice, h)
		all = append(all, f)
	}
	return all
}

// Fill executes a template of a rule or a verdict. They are data of ours, and tests execute
// all of them: one that does not parse is a bug.
func Fill(text string, data any) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	if err := template.Must(template.New("").Funcs(templateFuncs).Parse(text)).Execute(&b, data); err != nil {
		return "(" + err.Error() + ")"
	}
	return b.String()
}

var templateFuncs = template.FuncMap{
	"percent":  func(v Num) string { return words.Percent(float64(v)) },
	"show":     func(v Num, unit string) string { return words.Show(float64(v), unit) },
	"interval": func(c Case) string { return words.Range(float64(c.Value), float64(c.Lo), float64(c.Hi), c.Unit) },
	"count":    func(n int64) string { return words.Count(n) },
	"plural":   func(n int64, one, many string) string { return words.Plural(n, one, many) },
	"capital":  words.Capital,
	"join":     func(all []string) string { return words.Some(all) },
	"int":      func(n int) int64 { return int64(n) },
}

// signedPercent is a change: "+12 %".
func signedPercent(share float64) string {
	if share > 0 {
		return "+" + words.Percent(share)
	}
	return words.Percent(share)
}
