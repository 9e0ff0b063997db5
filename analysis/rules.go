package analysis

import (
	"slices"
	"strings"
	"text/template"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Tone is the colour of a verdict or a finding. It adds nothing to the words.
type Tone string

const (
	Good    Tone = "good"
	Neutral Tone = "neutral"
	Warn    Tone = "warn"
	Bad     Tone = "bad"
)

// Rank orders findings by importance for the reader.
type Rank string

const (
	Unreliable Rank = "unreliable" // the numbers are wrong or misleading
	Failure    Rank = "failure"    // operations or nodes failed
	Slow       Rank = "slow"       // why it is slow
	Notable    Rank = "notable"    // worth knowing
)

// place returns the position of a rank in the order of findings.
func (r Rank) place() int { return slices.Index([]Rank{Unreliable, Failure, Slow, Notable}, r) }

// Rule describes a possible finding: a condition over the frame, and the texts for it.
type Rule struct {
	ID   string
	Rank Rank
	Tone Tone
	// Holds returns a case for each place where the condition holds; none: no finding.
	Holds func(*Result) []Case
	// Title and Advice (what to do next) are templates over [Hits], Each (a line of evidence)
	// is one over a [Case].
	Title, Each, Advice string
	// Replaces are common rules that this rule of a view replaces if it fires.
	Replaces []string
}

// Case is one place where a rule's condition holds. The rule sets the fields that its texts use.
type Case struct {
	System string
	Name   string // system and place
	N, Of  int64
	Range  // in Unit
	Limit  Num
	Unit   string
	Text   string
	Hint   string // what to do, if that depends on the case
}

// Hits are the cases of a rule in one run.
type Hits struct {
	Case         // the first, for use in the title
	Cases []Case // all
	Count int
	Total int64 // sum of N
}

// Systems lists the systems of the cases.
func (h Hits) Systems() string {
	return words.List(h.distinct(func(c Case) string { return c.System }))
}

// Texts lists the distinct texts of the cases.
func (h Hits) Texts() string {
	return strings.Join(h.distinct(func(c Case) string { return c.Text }), "; ")
}

// Hints lists the distinct hints of the cases.
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

	InVerdict bool `json:"-"` // the verdict includes it
}

// mostEvidence is the largest number of lines of evidence of a finding.
const mostEvidence = 12

// find applies rules and returns their findings in the order of rank.
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

// Fill executes a template of a rule or a verdict. Templates are embedded and tests execute all of
// them, so a parse error is a bug.
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

// signedPercent formats a change: "+12 %".
func signedPercent(share float64) string {
	if share > 0 {
		return "+" + words.Percent(share)
	}
	return words.Percent(share)
}
