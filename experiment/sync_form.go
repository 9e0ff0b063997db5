package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// The texts of speeds, trouble and the faults of a sync:
//
//	speeds  = "link" | "lognormal" rate "x" number | ( "uniform" | "loguniform" ) rate ".." rate | "list" rate { rate }
//	trouble = "none" | group { ";" group }
//	group   = ( count | share ) ( "silent" | "stranger" | "at" rate )
//	faults  = "none" | fault { ";" fault }       as in swarms, with who = "node" | peers
//	peers   = "peers" | count "peers" | share "of" "peers"
const (
	peersPattern     = `(node|((` + countPattern + `|` + percentPattern + `\s+of)\s+)?peers?)`
	syncFaultPattern = `((crash|cut)\s+` + peersPattern + `|rate\s+` + ratePattern + `\s+of\s+` + peersPattern + `)\s+at\s+(` + percentPattern + `|` + durationPattern + `)(\s+for\s+` + durationPattern + `(\s+without\s+data)?)?`
	troublePattern   = `(` + countPattern + `|` + percentPattern + `)\s+(silent|strangers?|at\s+` + ratePattern + `)`
	betweenPattern   = ratePattern + `\.\.` + ratePattern
)

func speedsForm() form {
	return form{scalarKind{name: "speeds", noun: "link, lognormal 8Mbit x3, uniform 1Mbit..50Mbit, loguniform 1Mbit..50Mbit, or list 1Mbit 5Mbit",
		pattern: `^\s*(link|lognormal\s+` + ratePattern + `\s+x[0-9]+(\.[0-9]+)?|(log)?uniform\s+` + betweenPattern + `|list(\s+` + ratePattern + `)+)\s*$`,
		doc: "Rates at which peers send: `link`, all at link.rate; `lognormal 8Mbit x3`, drawn with this median and geometric standard deviation; `uniform 1Mbit..50Mbit` or `loguniform 1Mbit..50Mbit`, drawn between two rates; " +
			"`list 1Mbit 5Mbit 20Mbit`, in turn. What is drawn depends on the seed and the repetition: it is the same for all cells with as many peers."},
		func(s string) (string, error) { return canonical(ParseSpeeds(s)) }}
}

func troubleForm() form {
	return form{scalarKind{name: "trouble", noun: "none, or peers such as 1 silent; 25% at 500kbit",
		pattern: `^\s*(none|` + troublePattern + `(\s*;\s*` + troublePattern + `)*)\s*$`,
		doc: "Peers that are of little use: `none`, or one or more groups with `;` between them: `1 silent` takes connections and answers nothing, `25% stranger` has another chain, `1 at 500kbit` sends slowly. " +
			"A share is rounded up to whole peers; the seed chooses which; no peer is in two groups."},
		func(s string) (string, error) {
			trouble, err := ParseTrouble(s)
			return troubleText(trouble), err
		}}
}

func syncFaultsForm() form {
	return form{scalarKind{name: "faults of a sync", noun: "none, or faults such as crash peers at 50%; cut node at 10s for 5s",
		pattern: `^\s*(none|` + syncFaultPattern + `(\s*;\s*` + syncFaultPattern + `)*)\s*$`,
		doc: "What goes wrong while a node follows a chain: `none`, or one or more faults with `;` between them: `crash 1 peer at 50%`, `crash node at 50% for 2s`, `cut node at 30% for 10s`, `rate 1Mbit of peers at 50%`. " +
			"Each says what (kill the processes, cut them off from everybody, give their links another rate in both directions), to whom (the fresh `node`, or `peers`: all of them, a number, or a share rounded up; the seed chooses which), " +
			"when (once the fresh node has that share of the chain, or so long after the clock started), and for how long (then the processes are started again on what they had, or the fresh node `without data`; the cut heals; the rate is what it was; without `for` it stays)."},
		func(s string) (string, error) {
			faults, err := ParseSyncFaults(s)
			return faultsText(faults), err
		}}
}

// ParseSpeeds reads the rates at which peers send: "link", "lognormal 8Mbit x3",
// "uniform 1Mbit..50Mbit", "loguniform 1Mbit..50Mbit" or "list 1Mbit 5Mbit".
func ParseSpeeds(s string) (Speeds, error) {
	w := &words{rest: strings.Fields(s), all: s}
	v := Speeds{Kind: w.next()}
	var err error
	switch v.Kind {
	case "link":
	case SpeedsLognormal:
		const example = "write `lognormal 8Mbit x3`"
		if w.peek() == "" {
			return Speeds{}, badUnit(example, "%q has no median", s)
		}
		if v.Median, err = limitedRate(w.next()); err != nil {
			return Speeds{}, err
		}
		if v.Spread, err = parseSpreadFactor(w.next(), s); err != nil {
			return Speeds{}, err
		}
	case SpeedsUniform, SpeedsLoguniform:
		from, to, is := strings.Cut(w.next(), "..")
		if !is {
			return Speeds{}, badUnit("write `"+v.Kind+" 1Mbit..50Mbit`", "%q does not say between which two rates", s)
		}
		if isDigits(strings.Replace(from, ".", "", 1)) {
			if _, _, unit, ok := splitNumber(to); ok {
				return Speeds{}, badUnit("did you mean `"+from+unit+".."+to+"`?", "in the range %q the first rate has no unit", from+".."+to)
			}
		}
		if v.From, err = limitedRate(from); err != nil {
			return Speeds{}, err
		}
		if v.To, err = limitedRate(to); err != nil {
			return Speeds{}, err
		}
		if v.To <= v.From {
			return Speeds{}, badUnit("write the lower rate first; one rate for all is `list "+v.From.String()+"`", "the range %q has nothing between its ends", from+".."+to)
		}
	case SpeedsList:
		if w.peek() == "" {
			return Speeds{}, badUnit("write `list 1Mbit 5Mbit`", "%q is an empty list", s)
		}
		for w.peek() != "" {
			text := w.next()
			if strings.HasSuffix(text, ",") {
				return Speeds{}, badUnit("write spaces between the rates", "unexpected \",\" in %q", s)
			}
			r, err := limitedRate(text)
			if err != nil {
				return Speeds{}, err
			}
			v.List = append(v.List, r)
		}
	default:
		hint := "write `link`, `lognormal 8Mbit x3`, `uniform 1Mbit..50Mbit`, `loguniform 1Mbit..50Mbit` or `list 1Mbit 5Mbit`"
		if c := suggest.Nearest(v.Kind, []string{"link", SpeedsLognormal, SpeedsUniform, SpeedsLoguniform, SpeedsList}); c != "" {
			hint = "did you mean `" + c + "`?"
		} else if _, err := ParseBitRate(v.Kind); err == nil {
			hint = "one rate for all peers is `list " + v.Kind + "`"
		}
		return Speeds{}, badUnit(hint, "%q is not a distribution of rates", s)
	}
	return v, w.end("")
}

// limitedRate reads a rate that is one.
func limitedRate(text string) (BitRate, error) {
	if text == "unlimited" {
		return 0, badUnit("write a high rate, or `link` for all peers", "peers with other rates than their links cannot be unlimited")
	}
	return ParseBitRate(text)
}

// mostSpread is the largest geometric standard deviation: with it the middle
// two thirds of the peers are four orders of magnitude apart.
const mostSpread = 100

func parseSpreadFactor(text, all string) (float64, error) {
	const example = "write `x3`: two thirds of the peers are between a third of the median and three times it"
	number, is := strings.CutPrefix(text, "x")
	if !is {
		return 0, badUnit(example, "%q does not say how far the rates are spread", all)
	}
	_, _, unit, ok := splitNumber(number)
	f, err := strconv.ParseFloat(number, 64)
	switch {
	case !ok || unit != "" || err != nil:
		return 0, badUnit(example, "%q is not a factor", text)
	case f < 1:
		return 0, badUnit("at least x1, which is no spread", "%q is less than no spread", text)
	case f > mostSpread:
		return 0, badUnit(fmt.Sprintf("at most x%d", mostSpread), "%q is too wide", text)
	}
	return f, nil
}

// String is the text that [ParseSpeeds] reads.
func (v Speeds) String() string {
	switch v.Kind {
	case SpeedsLognormal:
		return "lognormal " + v.Median.String() + " x" + strconv.FormatFloat(v.Spread, 'f', -1, 64)
	case SpeedsUniform, SpeedsLoguniform:
		return v.Kind + " " + v.From.String() + ".." + v.To.String()
	case SpeedsList:
		text := v.Kind
		for _, r := range v.List {
			text += " " + r.String()
		}
		return text
	}
	return "link"
}

// ParseTrouble reads which peers are of little use: "none", or groups joined by
// semicolons, such as "1 silent; 25% at 500kbit", in the order in which they are
// written.
func ParseTrouble(s string) ([]Trouble, error) {
	if strings.TrimSpace(s) == "none" {
		return nil, nil
	}
	var all []Trouble
	for part := range strings.SplitSeq(s, ";") {
		t, err := parseTrouble(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		same := func(u Trouble) bool { return u.Manner == t.Manner && u.Rate == t.Rate }
		if slices.ContainsFunc(all, same) {
			return nil, badUnit("write one group with the sum", "%q has two groups of the same peers", s)
		}
		all = append(all, t)
	}
	return all, nil
}

func parseTrouble(s string) (Trouble, error) {
	const example = "write `1 silent`, `25% stranger` or `1 at 500kbit`; `;` stands between two groups"
	w := &words{rest: strings.Fields(s), all: s}
	t := Trouble{}
	first := w.next()
	switch {
	case first == "":
		return t, badUnit("write `none`, or a group such as `1 silent`", "a group of peers is empty")
	case first == "none":
		return t, badUnit("`none` stands alone", "unexpected `none` among peers")
	case strings.HasSuffix(first, "%"):
		var share Fraction
		if err := share.parse(first); err != nil {
			return t, err
		}
		if share == 0 {
			return t, badUnit("take the group away, or write a larger share", "a share of 0 in %q", s)
		}
		t.Share = float64(share)
		w.skip("of")
	case first[0] >= '0' && first[0] <= '9':
		var err error
		if strings.Trim(first, "0") == "" {
			return t, badUnit("take the group away", "no peers in %q", s)
		}
		if t.Count, err = countOf(first, "a group", maxPeers, "more peers than a node can have"); err != nil {
			return t, err
		}
	case slices.Contains([]string{MannerSilent, MannerStranger, "strangers", "at"}, first):
		return t, badUnit("write `1 "+strings.TrimSpace(s)+"`", "%q does not say how many peers", s)
	default:
		return t, badUnit(example, "%q is not a number or a share of peers", first)
	}
	if w.peek() == "peer" || w.peek() == "peers" {
		return t, badUnit("leave the word away: `"+first+" silent`", "unexpected %q in %q", w.peek(), s)
	}
	switch manner := w.next(); manner {
	case MannerSilent:
		t.Manner = MannerSilent
	case MannerStranger, "strangers":
		t.Manner = MannerStranger
	case "at":
		if w.peek() == "" {
			return t, badUnit("write `1 at 500kbit`", "%q does not say at which rate", s)
		}
		var err error
		if t.Rate, err = limitedRate(w.next()); err != nil {
			return t, err
		}
	case "":
		return t, badUnit(example, "%q does not say what is wrong with them", s)
	default:
		hint := example
		if c := suggest.Nearest(manner, []string{MannerSilent, MannerStranger}); c != "" {
			hint = "did you mean `" + c + "`?"
		} else if _, err := ParseBitRate(manner); err == nil {
			hint = "write `" + first + " at " + manner + "`"
		}
		return t, badUnit(hint, "%q is not silent, stranger or at a rate", manner)
	}
	return t, w.end("`;` stands between two groups")
}

// String is a part of the text that [ParseTrouble] reads.
func (t Trouble) String() string {
	who := Fraction(t.Share).String()
	if t.Count > 0 {
		who = strconv.Itoa(t.Count)
	}
	if t.Manner == "" {
		return who + " at " + t.Rate.String()
	}
	return who + " " + t.Manner
}

func troubleText(trouble []Trouble) string {
	if len(trouble) == 0 {
		return "none"
	}
	texts := make([]string, len(trouble))
	for i, t := range trouble {
		texts[i] = t.String()
	}
	return strings.Join(texts, "; ")
}

var syncFaults = faultWords{
	groups: []string{WhoPeers, WhoNode}, single: WhoNode, most: maxPeers, mostText: "more peers than a node can have",
	example: "such as `crash 1 peer at 50%`", whom: "write `node` for the fresh node, or `peers`, `2 peers`, `25% of peers`", several: WhoPeers,
	half: "the fresh node has half of the chain", start: "the clock started", all: "the fresh node has everything",
	possible: Fault.possibleInSync,
}

// ParseSyncFaults reads what goes wrong while a node follows a chain: "none", or
// faults joined by semicolons, such as "crash 1 peer at 50%; cut node at 10s for
// 5s". They are in the order in which they are written, about [WhoPeers] or
// [WhoNode].
func ParseSyncFaults(s string) ([]Fault, error) { return syncFaults.parse(s) }

// possibleInSync refuses faults that can be read but not be executed.
func (f Fault) possibleInSync(s string) error {
	switch {
	case f.Empty && f.Kind != FaultCrash:
		return badUnit("only `crash` has it", "`without data` has no meaning in the fault %q", s)
	case f.Empty && f.For == 0:
		return badUnit("add `for 2s`, or leave `without data` away", "in the fault %q nothing is started again, with or without data", s)
	case f.Empty && f.Who == WhoPeers:
		return badUnit("crash the node without data, or peers with it", "in the fault %q a peer would come back without anything to give", s)
	case f.Who == WhoNode && f.Kind != FaultRate && f.For == 0:
		return badUnit("add `for 2s`", "after the fault %q the fresh node never goes on", s)
	}
	return nil
}
