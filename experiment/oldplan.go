package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Plans of format 1, which releases until November 2026 wrote, have words where this
// one has typed values, and every key that may be a factor is a list. upgrade is all
// that knows them.

// upgrade turns a plan of format 1 into one of this format.
func upgrade(data []byte) (upgraded []byte, removed string, err error) {
	var plan object
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // seeds have 64 bits
	if err := dec.Decode(&plan); err != nil {
		return nil, "", err
	}
	plan["format"] = PlanFormat
	experiment := section(plan, "experiment")
	factors := object{}
	sections := []object{experiment}
	for _, path := range axisPaths() {
		at, key := experiment, path
		for name, rest, more := strings.Cut(key, "."); more; name, rest, more = strings.Cut(key, ".") {
			at, key = section(at, name), rest
		}
		levels, _ := at[key].([]any)
		if delete(at, key); len(levels) == 0 {
			continue
		}
		for i := range levels {
			if levels[i], err = typed(path, levels[i]); err != nil {
				return nil, "", err
			}
		}
		if at[key] = levels[0]; len(levels) > 1 {
			factors[path] = levels
		}
	}
	experiment["factors"] = factors
	cells, _ := plan["cells"].([]any)
	for _, c := range cells {
		cell, _ := c.(object)
		sections = append(sections, cell)
		sync := section(cell, "sync")
		if options, is := sync["vary"]; is {
			delete(sync, "vary")
			sync["options"] = options
		}
		for _, path := range []string{"disseminate.join", "disseminate.faults", "sync.speeds", "sync.trouble", "sync.faults"} {
			name, key, _ := strings.Cut(path, ".")
			at := section(cell, name)
			value, is := at[key]
			if !is {
				continue
			}
			if at[key], err = typed(path, value); err != nil {
				return nil, "", err
			}
		}
	}
	for _, at := range sections {
		for _, path := range []string{"upload.attribution", "sync.design", "sync.search"} {
			name, key, _ := strings.Cut(path, ".")
			if value := section(at, name)[key]; value != nil && value != false && value != "full" {
				removed = path
			}
			delete(section(at, name), key)
		}
		data := section(at, "data")
		for _, key := range []string{"mix", "spread"} {
			value, is := data[key]
			if !is {
				continue
			}
			if data[key], err = typed("data."+key, value); err != nil {
				return nil, "", err
			}
		}
	}
	upgraded, err = json.Marshal(plan)
	return upgraded, removed, err
}

// section is the object of that name in another; an empty one where there is none.
func section(in object, name string) object {
	if o, is := in[name].(object); is {
		return o
	}
	return object{}
}

// axisPaths are those of all keys that may be factors.
func axisPaths() []string {
	var paths []string
	var walk func(t reflect.Type, prefix string)
	walk = func(t reflect.Type, prefix string) {
		for _, f := range tableOf(t).fields {
			if f.axis {
				paths = append(paths, prefix+f.key)
			} else if s := f.section(); s != nil && !f.list() {
				walk(s, prefix+f.key+".")
			}
		}
	}
	walk(reflect.TypeFor[Experiment](), "")
	return paths
}

// typed is a value of format 1 as this format has it.
func typed(path string, value any) (any, error) {
	text, is := value.(string)
	if !is {
		return value, nil
	}
	switch path {
	case "disseminate.faults", "sync.faults":
		return FaultsOf(text)
	case "disseminate.join":
		return JoinOf(text)
	case "sync.speeds":
		return SpeedsOf(text)
	case "sync.trouble":
		return TroublesOf(text)
	case "data.mix":
		var mix Mix
		for part := range strings.SplitSeq(text, ", ") {
			words := append(strings.Fields(part), "", "")
			m := SizeShare{}
			from, to, is := strings.Cut(words[1], "..")
			if is {
				if err := parseAll(words[0], &m.Share, from, &m.From, to, &m.To); err != nil {
					return nil, err
				}
			} else if err := parseAll(words[0], &m.Share, from, &m.Size); err != nil {
				return nil, err
			}
			mix = append(mix, m)
		}
		return mix, nil
	case "data.spread":
		from, to, is := strings.Cut(text, "..")
		if !is { // of one size
			to = from
		}
		var r SizeRange
		err := parseAll(from, &r.From, to, &r.To)
		return r, err
	}
	return value, nil
}

// parseAll reads pairs of a text and what it is the value of; an empty text has none.
func parseAll(pairs ...any) error {
	for i := 0; i < len(pairs); i += 2 {
		if text := pairs[i].(string); text != "" {
			if err := pairs[i+1].(scalar).parse(text); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	faultWords   = regexp.MustCompile(`^(?:(crash|cut) |rate (\S+)(?: of)? ?)(?:(\d+|\S+%)(?: of)? )?(seeder|leecher|node|peer)?(s?) ?at (\S+)(?: for (\S+))?( without data)?$`)
	troubleWords = regexp.MustCompile(`^(\S+) (?:(silent|stranger)|at (\S+))$`)
)

// FaultsOf reads the words that [Faults.String] writes.
func FaultsOf(text string) (Faults, error) {
	var all Faults
	for part := range strings.SplitSeq(text, "; ") {
		if part == "none" {
			continue
		}
		m := faultWords.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("%q is not a fault", part)
		}
		f := Fault{WithoutData: m[8] != ""}
		who := m[4] + m[5]
		if m[3] != "" && who != "" {
			who = m[4] + "s"
		}
		switch m[1] {
		case "crash":
			f.Crash = who
		case "cut":
			f.Cut = who
		default:
			f.Whose = who
		}
		if err := parseAll(m[2], &f.Rate, m[3], &f.Count, m[6], &f.At, m[7], &f.For); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// JoinOf reads the words that [Join.String] writes.
func JoinOf(text string) (j Join, err error) {
	words := strings.Fields(text)
	switch {
	case len(words) == 2:
		err = parseAll(words[1], &j.Poisson)
	case len(words) == 5:
		if j.Wave, err = strconv.Atoi(words[2]); err == nil {
			err = parseAll(words[4], &j.Every)
		}
	}
	return j, err
}

// SpeedsOf reads the words that [Speeds.String] writes.
func SpeedsOf(text string) (v Speeds, err error) {
	words := strings.Fields(strings.ReplaceAll(text, "..", " "))
	if len(words) == 0 || words[0] == "lognormal" && len(words) == 1 {
		return v, fmt.Errorf("%q are no speeds", text)
	}
	rates := make([]BitRate, len(words)-1)
	for i, word := range words[1:] {
		if number, is := strings.CutPrefix(word, "x"); is {
			v.Spread, err = strconv.ParseFloat(number, 64)
		} else {
			err = parseAll(word, &rates[i])
		}
		if err != nil {
			return v, err
		}
	}
	switch words[0] {
	case "lognormal":
		v.Lognormal = rates[0]
	case "uniform":
		v.Uniform = rates
	case "loguniform":
		v.Loguniform = rates
	case "list":
		v.List = rates
	}
	return v, nil
}

// TroublesOf reads the words that [Troubles.String] writes.
func TroublesOf(text string) (Troubles, error) {
	var all Troubles
	for part := range strings.SplitSeq(text, "; ") {
		if part == "none" {
			continue
		}
		m := troubleWords.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("%q is not a group of peers", part)
		}
		var t Trouble
		of := map[string]*Part{MannerSilent: &t.Silent, MannerStranger: &t.Stranger, "": &t.Slow}[m[2]]
		if err := parseAll(m[1], of, m[3], &t.Rate); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
