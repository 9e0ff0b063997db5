package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
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
	cells, _ := plan["cells"].([]any)
	for _, c := range append([]any{experiment}, cells...) {
		cell, _ := c.(object)
		moveUp(cell)
	}
	factors := object{}
	var paths []string // of all keys that may be factors
	sections := []object{experiment}
	walk(reflect.TypeFor[Experiment](), "", func(path string, f field) {
		if f.axis {
			paths = append(paths, path)
		}
	})
	for _, path := range paths {
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
	for _, c := range cells {
		cell, _ := c.(object)
		sections = append(sections, cell)
		sync := section(cell, "sync")
		if options, is := sync["vary"]; is {
			delete(sync, "vary")
			sync["options"] = options
		}
		if err := retype(cell, "disseminate.join", "disseminate.faults", "sync.speeds", "sync.trouble", "sync.faults"); err != nil {
			return nil, "", err
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
		if err := retype(at, "data.mix", "data.spread"); err != nil {
			return nil, "", err
		}
	}
	upgraded, err = json.Marshal(plan)
	return upgraded, removed, err
}

// moveUp gives the link its rate up, which only swarms had, in their section.
func moveUp(cell object) {
	if swarm := section(cell, "disseminate"); swarm["up"] != nil {
		section(cell, "link")["up"] = swarm["up"]
		delete(swarm, "up")
	}
	factors, _ := cell["factors"].([]any)
	for _, f := range factors {
		if factor, _ := f.(object); factor["path"] == "disseminate.up" {
			factor["path"] = "link.up"
		}
	}
}

// retype types the values of some keys.
func retype(in object, paths ...string) (err error) {
	for _, path := range paths {
		name, key, _ := strings.Cut(path, ".")
		at := section(in, name)
		if value, is := at[key]; is {
			if at[key], err = typed(path, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// section is the object of that name in another; an empty one where there is none.
func section(in object, name string) object {
	if o, is := in[name].(object); is {
		return o
	}
	return object{}
}

// A form of words that format 1 had for a value: the names of its groups are keys of the value.
type words struct {
	form *regexp.Regexp
	sep  string // between the values of a list
}

const nodeWord = `(?:seeder|leecher|node|peer)s?`

var (
	faultWords = words{regexp.MustCompile(`^(?:crash (?P<crash>` + nodeWord + `)|cut (?P<cut>` + nodeWord + `)|rate (?P<rate>\S+)(?: of (?P<of>` + nodeWord + `))?)` +
		`(?: × (?P<count>\S+))? at (?P<at>\S+)(?: for (?P<for>\S+))?(?: (?P<without_data>without data))?$`), "; "}
	joinWords    = words{form: regexp.MustCompile(`^(?:together|waves of (?P<wave>\d+) every (?P<every>\S+)|poisson (?P<poisson>\S+))$`)}
	troubleWords = words{regexp.MustCompile(`^(?:(?P<silent>\S+) silent|(?P<stranger>\S+) stranger|(?P<slow>\S+) at (?P<rate>\S+))$`), "; "}
	speedWords   = words{form: regexp.MustCompile(`^(?:link|lognormal (?P<lognormal>\S+) x(?P<spread>\S+)|uniform (?P<uniform>.+)|` +
		`loguniform (?P<loguniform>.+)|list (?P<list>.+))$`)}
	mixWords    = words{regexp.MustCompile(`^(?P<share>\S+) (?:(?P<from>\S+)\.\.(?P<to>\S+)|(?P<size>\S+))$`), ", "}
	spreadWords = words{form: regexp.MustCompile(`^(?P<from>\S+)\.\.(?P<to>\S+)$`)}
)

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
		return listOf[SizeShare](mixWords, text)
	case "data.spread":
		if !strings.Contains(text, "..") { // of one size
			text += ".." + text
		}
		return valueOf[SizeRange](spreadWords, text)
	}
	return value, nil
}

// countWords are the nodes that a fault is about, where they are not all of their group.
var countWords = regexp.MustCompile(` ([0-9.]+%?)(?: of)? (seeder|leecher|node|peer)s? at `)

// FaultsOf reads the words that [Faults.String] writes.
func FaultsOf(text string) (Faults, error) {
	return listOf[Fault](faultWords, countWords.ReplaceAllString(text, " ${2}s × ${1} at "))
}

// JoinOf reads the words that [Join.String] writes.
func JoinOf(text string) (Join, error) { return valueOf[Join](joinWords, text) }

// SpeedsOf reads the words that [Speeds.String] writes.
func SpeedsOf(text string) (Speeds, error) { return valueOf[Speeds](speedWords, text) }

// TroublesOf reads the words that [Troubles.String] writes.
func TroublesOf(text string) (Troubles, error) { return listOf[Trouble](troubleWords, text) }

// listOf reads several values; none has a word of its own.
func listOf[T any](w words, text string) (all []T, err error) {
	for part := range strings.SplitSeq(text, w.sep) {
		if part == "none" {
			continue
		}
		v, err := valueOf[T](w, part)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func valueOf[T any](w words, text string) (value T, err error) {
	m := w.form.FindStringSubmatch(text)
	if m == nil {
		return value, fmt.Errorf("%q is nothing that format 1 had", text)
	}
	v := reflect.ValueOf(&value).Elem()
	for i, key := range w.form.SubexpNames() {
		if m[i] == "" || key == "" {
			continue
		}
		f := tableOf(v.Type()).field(key)
		at := v.Field(f.index)
		switch {
		case f.typ.Kind() == reflect.Bool:
			at.SetBool(true)
		case f.list():
			for _, part := range strings.Fields(strings.ReplaceAll(m[i], "..", " ")) {
				item := reflect.New(f.typ.Elem()).Elem()
				if err := f.parsePlain(part, item); err != nil {
					return value, err
				}
				at.Set(reflect.Append(at, item))
			}
		default:
			if err := f.parsePlain(m[i], at); err != nil {
				return value, err
			}
		}
	}
	return value, nil
}
