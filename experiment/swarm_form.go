package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// The texts of join, stay and faults:
//
//	join   = "together" | "waves of" count "every" duration | "poisson" arrival-rate
//	stay   = "forever" | "leave" | duration
//	faults = "none" | fault { ";" fault }
//	fault  = "crash" who when [ "for" duration [ "without data" ] ]
//	       | "cut" who when [ "for" duration ]
//	       | "rate" rate [ "of" who ] when [ "for" duration ]
//	who    = group | count group | share "of" group
//	group  = "seeders" | "leechers" | "nodes"      (singular after a count of 1)
//	when   = "at" ( share | duration )
const (
	countPattern    = `[0-9]{1,3}`
	percentPattern  = `[0-9]+(\.[0-9]+)?%`
	durationPattern = `(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)`
	whoPattern      = `((` + countPattern + `|` + percentPattern + `\s+of)\s+)?(seeder|leecher|node)s?`
	ratePattern     = `[0-9]+(\.[0-9]+)?(bit|[kKMGT]bit|bit/s|[kKMGT]bit/s|bps|[kKMGT]bps)`
	faultPattern    = `((crash|cut)\s+` + whoPattern + `|rate\s+` + ratePattern + `(\s+of\s+` + whoPattern + `)?)\s+at\s+(` + percentPattern + `|` + durationPattern + `)(\s+for\s+` + durationPattern + `(\s+without\s+data)?)?`
)

func joinForm() form {
	return form{scalarKind{name: "join", noun: "together, waves of 4 every 5s, or poisson 0.5/s",
		pattern: `^\s*(together|waves\s+of\s+` + countPattern + `\s+every\s+` + durationPattern + `|poisson\s+[0-9]+(\.[0-9]+)?/[smh])\s*$`,
		doc:     "When the leechers of a swarm begin: `together`, at one barrier; `waves of 4 every 5s`, the first wave at once; `poisson 0.5/s`, one by one with exponential gaps."},
		func(s string) (string, error) { return canonical(ParseJoin(s)) }}
}

func stayForm() form {
	return form{scalarKind{name: "stay", noun: "forever, leave, or a duration such as 30s",
		pattern: `^\s*(forever|leave|` + durationPattern + `)\s*$`,
		doc:     "What a leecher does once it has everything: serve the others until the trial ends (`forever`), `leave` at once, or after a time: `30s`."},
		func(s string) (string, error) { return canonical(ParseStay(s)) }}
}

func faultsForm() form {
	return form{scalarKind{name: "faults", noun: "none, or faults such as crash seeders at 50%; cut 2 nodes at 10s for 20s",
		pattern: `^\s*(none|` + faultPattern + `(\s*;\s*` + faultPattern + `)*)\s*$`,
		doc: "What goes wrong in a swarm: `none`, or one or more faults with `;` between them: `crash seeders at 50%`, `crash 25% of leechers at 30% for 10s without data`, `cut 2 nodes at 10s for 20s`, `rate 10Mbit of 50% of leechers at 50%`. " +
			"Each says what (kill the processes, cut the nodes off from all others, give their links another rate in both directions), to whom (`seeders`, `leechers` or `nodes`: all of them, a number, or a share rounded up to whole nodes; the seed chooses which), " +
			"when (once the leechers have that share of all their content together, or so long after the release), and for how long (then the processes are started again with their data or `without data`, the cut heals, the rate is what it was; without `for` it stays)."},
		func(s string) (string, error) {
			faults, err := ParseFaults(s)
			return faultsText(faults), err
		}}
}

func canonical[T fmt.Stringer](v T, err error) (string, error) { return v.String(), err }

// ParseJoin reads when the leechers of a swarm begin: "together", "waves of 4
// every 5s" or "poisson 0.5/s".
func ParseJoin(s string) (Join, error) {
	w := &words{rest: strings.Fields(s), all: s}
	kinds := []string{"together", "waves", "poisson"}
	var j Join
	var err error
	switch kind := w.next(); kind {
	case "together":
	case "waves", "wave":
		const example = "write `waves of 4 every 5s`"
		if !w.skip("of") {
			return Join{}, badUnit(example, "%q does not say of how many leechers a wave is", s)
		}
		if j.Wave, err = parseCount(w.next(), "a wave"); err != nil {
			return Join{}, err
		}
		if w.peek() == "leechers" || w.peek() == "leecher" || w.peek() == "nodes" {
			return Join{}, badUnit("leave the word away: `waves of "+strconv.Itoa(j.Wave)+" every 5s`", "unexpected %q in %q", w.peek(), s)
		}
		if !w.skip("every") {
			return Join{}, badUnit(example, "%q does not say when the next wave begins", s)
		}
		if j.Every, err = parseTime(w.next(), "the next wave begins", "with a wave every 0s all begin at once", "write `together`"); err != nil {
			return Join{}, err
		}
	case "poisson":
		if w.peek() == "" {
			return Join{}, badUnit("write `poisson 0.5/s`", "%q does not say at which rate leechers arrive", s)
		}
		var r OpRate
		if err := r.parse(w.next()); err != nil {
			return Join{}, err
		}
		j.Rate = float64(r)
	default:
		hint := "write `together`, `waves of 4 every 5s` or `poisson 0.5/s`"
		if c := suggest.Nearest(kind, kinds); c != "" {
			hint = "did you mean `" + c + "`?"
		}
		return Join{}, badUnit(hint, "%q is not %s", s, joinForm().kind.noun)
	}
	return j, w.end("")
}

// String is the text that [ParseJoin] reads.
func (j Join) String() string {
	switch {
	case j.Wave > 0:
		return fmt.Sprintf("waves of %d every %s", j.Wave, Duration(j.Every))
	case j.Rate > 0:
		return "poisson " + OpRate(j.Rate).String()
	}
	return "together"
}

// ParseStay reads how long a leecher serves others once it has everything:
// "forever", "leave" or a duration.
func ParseStay(s string) (Stay, error) {
	text := strings.TrimSpace(s)
	switch text {
	case "forever":
		return Stay{Forever: true}, nil
	case "leave":
		return Stay{}, nil
	}
	var d Duration
	if err := d.parse(text); err != nil {
		hint := err.(*unitError).hint
		if c := suggest.Nearest(text, []string{"forever", "leave"}); c != "" {
			hint = "did you mean `" + c + "`?"
		} else if hint == "" {
			hint = "write `forever`, `leave`, or a time such as `30s`"
		}
		return Stay{}, badUnit(hint, "%q is not %s", s, stayForm().kind.noun)
	}
	if d == 0 {
		return Stay{}, badUnit("write `leave`", "a stay of 0 is none")
	}
	return Stay{For: d.Std()}, nil
}

// String is the text that [ParseStay] reads.
func (s Stay) String() string {
	switch {
	case s.Forever:
		return "forever"
	case s.For > 0:
		return Duration(s.For).String()
	}
	return "leave"
}

// ParseFaults reads what goes wrong in a swarm: "none", or faults joined by
// semicolons, such as "crash seeders at 50%; cut 2 nodes at 10s for 20s". They
// are in the order in which they are written.
func ParseFaults(s string) ([]Fault, error) {
	faults, err := swarmFaults.parse(s)
	if err != nil {
		return nil, err
	}
	isCut := func(f Fault) bool { return f.Kind == FaultCut }
	lasting := func(f Fault) bool { return isCut(f) && f.For == 0 }
	if i := slices.IndexFunc(faults, isCut); i >= 0 && slices.ContainsFunc(faults[i+1:], isCut) && slices.ContainsFunc(faults, lasting) {
		return nil, badUnit("let each heal before the next begins: add `for 20s`", "%q cuts the swarm more than once, and one of the cuts never heals", s)
	}
	return faults, nil
}

// faultWords is how the faults of one scenario are written.
type faultWords struct {
	groups   []string // whom faults may be about
	single   string   // of them, the one that is a single node and has no plural
	everyone string   // whom a rate is about when nobody is named; empty: somebody must be
	most     int      // nodes of a group, and that in words
	mostText string
	example  string // "such as `crash seeders at 50%`"
	whom     string // "write `seeders`, `2 leechers` or `25% of leechers`"
	several  string // the group in examples: "leechers"
	half     string // what `at 50%` means
	start    string // what `at 10s` counts from
	all      string // what is so at 100 %
	possible func(f Fault, s string) error
}

var swarmFaults = faultWords{
	groups: []string{"seeders", "leechers", "nodes"}, everyone: "nodes", most: maxCount, mostText: "more nodes than a swarm can have",
	example: "such as `crash seeders at 50%`", whom: "write `seeders`, `2 leechers` or `25% of leechers`", several: "leechers",
	half: "the leechers have half of all their content together", start: "the release", all: "the leechers have everything",
	possible: Fault.possible,
}

// parse reads "none", or faults joined by semicolons.
func (fw *faultWords) parse(s string) ([]Fault, error) {
	if strings.TrimSpace(s) == "none" {
		return nil, nil
	}
	var faults []Fault
	for part := range strings.SplitSeq(s, ";") {
		f, err := fw.fault(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func faultsText(faults []Fault) string {
	if len(faults) == 0 {
		return "none"
	}
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.String()
	}
	return strings.Join(texts, "; ")
}

func (fw *faultWords) fault(s string) (Fault, error) {
	f := Fault{Part: math.NaN()}
	w := &words{rest: strings.Fields(s), all: s}
	var err error
	switch kind := w.next(); kind {
	case "":
		return f, badUnit("write `none`, or a fault "+fw.example+"; `;` stands between two faults only", "a fault is empty")
	case "none":
		return f, badUnit("`none` stands alone", "unexpected `none` among faults")
	case string(FaultCrash), string(FaultCut):
		f.Kind = FaultKind(kind)
		err = f.parseWho(w, fw)
	case string(FaultRate):
		f.Kind = FaultRate
		err = f.parseRate(w, fw)
	default:
		hint := "write `crash`, `cut` or `rate` first, " + fw.example
		if c := suggest.Nearest(kind, []string{"crash", "cut", "rate", "none"}); c != "" {
			hint = "did you mean `" + c + "`?"
		}
		return f, badUnit(hint, "%q is not a kind of fault", kind)
	}
	if err != nil {
		return f, err
	}
	if err := f.parseWhen(w, fw); err != nil {
		return f, err
	}
	if w.skip("for") {
		if f.For, err = parseTime(w.next(), "the fault is undone", "after 0s it would be undone at once", "leave `for` away, and it is never undone"); err != nil {
			return f, err
		}
	}
	if w.peek() == "without" {
		w.next()
		if !w.skip("data") {
			return f, badUnit("write `without data`", "unexpected %q in the fault %q", "without", s)
		}
		f.Empty = true
	}
	if err := w.end("a fault is like `crash 2 " + fw.several + " at 10s for 5s`; `;` stands between two"); err != nil {
		return f, err
	}
	return f, fw.possible(f, s)
}

// possible refuses faults that can be read but not be executed in any swarm.
func (f Fault) possible(s string) error {
	switch {
	case f.Empty && f.Kind != FaultCrash:
		return badUnit("only `crash` has it", "`without data` has no meaning in the fault %q", s)
	case f.Empty && f.For == 0:
		return badUnit("add `for 10s`, or leave `without data` away", "in the fault %q nothing is started again, with or without data", s)
	case f.Empty && f.Who != "leechers":
		return badUnit("crash leechers without data, or seeders with it", "in the fault %q a seeder would come back without anything to give", s)
	case f.Kind == FaultCut && f.Who == "nodes" && f.Count == 0 && f.Share == 1:
		return badUnit("name a part of them: `cut 50% of nodes`", "the fault %q cuts all nodes off from nobody", s)
	}
	return nil
}

// parseRate reads what follows `rate`: the rate, and whose it is, all nodes
// where that is not said.
func (f *Fault) parseRate(w *words, fw *faultWords) error {
	text := w.next()
	if text == "" || text == "of" || text == "at" {
		return badUnit("write `rate 10Mbit at 50%`", "the fault %q does not say which rate", w.all)
	}
	if text == "unlimited" {
		return badUnit("write a high rate, or end the fault with `for 10s`", "the fault %q cannot take the limit of a link away", w.all)
	}
	if err := f.Rate.parse(text); err != nil {
		return err
	}
	if w.skip("of") {
		return f.parseWho(w, fw)
	}
	if f.Who, f.Share = fw.everyone, 1; f.Who == "" {
		return badUnit("write `rate "+f.Rate.String()+" of "+fw.several+" at 50%`", "the fault %q does not say whose rate", w.all)
	}
	return nil
}

// parseWho reads "leechers", "2 leechers" or "25% of leechers".
func (f *Fault) parseWho(w *words, fw *faultWords) error {
	example := fw.whom
	f.Share = 1
	first := w.next()
	group := first
	switch {
	case first == "all" || first == "the":
		return badUnit("leave the word away: `"+fw.several+"` are all of them", "unexpected %q in the fault %q", first, w.all)
	case first == "" || first == "at":
		return badUnit(example, "the fault %q does not say whom", w.all)
	case strings.HasSuffix(first, "%"):
		var share Fraction
		if err := share.parse(first); err != nil {
			return err
		}
		if share == 0 {
			return badUnit("take the fault away, or write a larger share", "a share of 0 in the fault %q", w.all)
		}
		f.Share = float64(share)
		if !w.skip("of") {
			return badUnit("write `"+first+" of "+fw.several+"`", "the fault %q does not say of whom %s are", w.all, first)
		}
		group = w.next()
	case first[0] >= '0' && first[0] <= '9':
		count, err := countOf(first, "a fault", fw.most, fw.mostText)
		if err != nil {
			return err
		}
		f.Count, f.Share = count, 0
		if w.peek() == "of" {
			return badUnit(fmt.Sprintf("write `%d %s`, or `%d%% of %[2]s`", count, fw.several, count), "unexpected \"of\" in the fault %q", w.all)
		}
		if group = w.next(); count == 1 {
			group = strings.TrimSuffix(group, "s") + "s"
		}
	}
	if fw.single != "" && strings.TrimSuffix(group, "s") == fw.single && group != first {
		return badUnit("write `"+fw.single+"`", "there is one %s, and the fault %q names some", fw.single, w.all)
	}
	if !slices.Contains(fw.groups, group) {
		hint := example
		if c := suggest.Nearest(group, fw.groups); c != "" {
			hint = "did you mean `" + c + "`?"
		}
		if group == "" || group == "at" {
			return badUnit(hint, "the fault %q does not say whom", w.all)
		}
		return badUnit(hint, "%q is not %s", group, oneOf(fw.groups))
	}
	f.Who = group
	return nil
}

// parseWhen reads "at 50%" or "at 10s".
func (f *Fault) parseWhen(w *words, fw *faultWords) error {
	if w.peek() != "" && w.peek() != "at" {
		return badUnit("then comes when: `at 50%` or `at 10s`", "unexpected %q in the fault %q", w.peek(), w.all)
	}
	w.next()
	text := w.next()
	if text == "" {
		return badUnit("add `at 50%`, when "+fw.half+", or `at 10s`, so long after "+fw.start, "the fault %q does not say when", w.all)
	}
	if strings.HasSuffix(text, "%") {
		var share Fraction
		if err := share.parse(text); err != nil {
			return err
		}
		if share == 1 {
			return badUnit("at most 99.9%", "at 100%% %s, and the fault %q comes too late", fw.all, w.all)
		}
		f.Part = float64(share)
		return nil
	}
	var d Duration
	if err := d.parse(text); err != nil {
		hint := err.(*unitError).hint
		if _, number, unit, ok := splitNumber(text); ok && unit == "" {
			hint = "write `at " + number + "%` or `at " + number + "s`"
		} else if strings.HasSuffix(text, ",") {
			hint = "write `;` between two faults"
		} else if hint == "" {
			hint = "write `at 50%` or `at 10s`"
		}
		return badUnit(hint, "%q is neither a share nor a duration", text)
	}
	f.At = d.Std()
	return nil
}

// String is the text that [ParseFaults] reads.
func (f Fault) String() string {
	who := f.Who
	switch {
	case f.Count == 1:
		who = "1 " + strings.TrimSuffix(f.Who, "s")
	case f.Count > 0:
		who = fmt.Sprintf("%d %s", f.Count, f.Who)
	case f.Share < 1:
		who = Fraction(f.Share).String() + " of " + f.Who
	}
	var b strings.Builder
	b.WriteString(string(f.Kind))
	switch {
	case f.Kind != FaultRate:
		b.WriteString(" " + who)
	case who == "nodes":
		b.WriteString(" " + f.Rate.String())
	default:
		b.WriteString(" " + f.Rate.String() + " of " + who)
	}
	if math.IsNaN(f.Part) {
		b.WriteString(" at " + Duration(f.At).String())
	} else {
		b.WriteString(" at " + Fraction(f.Part).String())
	}
	if f.For > 0 {
		b.WriteString(" for " + Duration(f.For).String())
	}
	if f.Empty {
		b.WriteString(" without data")
	}
	return b.String()
}

// Of is how many of n seeders, leechers or nodes the fault is about: as many as
// it names, which may be more than n, or its share of them, rounded up.
func (f Fault) Of(n int) int {
	if f.Count > 0 {
		return f.Count
	}
	return shareOf(n, f.Share)
}

// shareOf is a share of n things, rounded up to a whole one: 10 % of 30 are 3,
// whatever the binary fraction of 0.1 is.
func shareOf(n int, share float64) int {
	if share <= 0 {
		return 0
	}
	return min(n, max(1, int(math.Ceil(float64(n)*share-1e-9))))
}

// maxCount is the most nodes that a swarm may have.
const maxCount = 256

func parseCount(text, of string) (int, error) {
	return countOf(text, of, maxCount, swarmFaults.mostText)
}

// countOf reads a number of nodes, at most so many; mostText says what a larger
// one would be.
func countOf(text, of string, most int, mostText string) (int, error) {
	if text == "" {
		return 0, badUnit("write a number such as 4", "%s has no number of nodes", of)
	}
	n, err := strconv.Atoi(text)
	switch {
	case !isDigits(text) || err != nil:
		return 0, numberError(text)
	case n == 0:
		return 0, badUnit("at least 1", "%s of 0 nodes is none", of)
	case n > most:
		return 0, badUnit(fmt.Sprintf("at most %d", most), "%s is %s", text, mostText)
	}
	return n, nil
}

// parseTime reads a duration that must be there (what says until what it is) and
// not be 0 (zero and hint say what that would mean).
func parseTime(text, what, zero, hint string) (time.Duration, error) {
	if text == "" {
		return 0, badUnit("add a time such as 5s", "no time is given after which %s", what)
	}
	var d Duration
	if err := d.parse(text); err != nil {
		return 0, err
	}
	if d == 0 {
		return 0, badUnit(hint, "%s", zero)
	}
	return d.Std(), nil
}

// words are what is left of a text.
type words struct {
	rest []string
	all  string
}

func (w *words) peek() string {
	if len(w.rest) == 0 {
		return ""
	}
	return w.rest[0]
}

func (w *words) next() string {
	word := w.peek()
	if word != "" {
		w.rest = w.rest[1:]
	}
	return word
}

// skip takes the word if it is the next one.
func (w *words) skip(word string) bool {
	if w.peek() != word {
		return false
	}
	w.next()
	return true
}

func (w *words) end(hint string) error {
	if w.peek() == "" {
		return nil
	}
	return badUnit(hint, "unexpected %q in %q", w.peek(), w.all)
}

// oneOf is a list of words: "seeders, leechers or nodes".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
