package experiment

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/internal/option"
)

// Catalog describes the available storage systems: the names allowed under `systems:` and the
// options allowed under `with:`.
type Catalog []SystemSpec

// SystemSpec describes one system that an experiment may use.
type SystemSpec struct {
	Name     string
	Modes    []string // at least one of "start", "attach"; the first is the default
	Options  []option.Option
	Baseline bool // a raw baseline: no storage system, just bytes over the same link
	// Can lists abilities of its nodes: "http" (their objects can be fetched over HTTP), "spread"
	// (they can be a swarm, in which those of a raw baseline pass nothing on) and "follow" (they
	// can follow a chain that their peers have).
	Can []string
}

func (c Catalog) find(name string) *SystemSpec {
	return first(c, func(s *SystemSpec) bool { return s.Name == name })
}

// Names returns the names of the systems.
func (c Catalog) Names() []string { return each(c, func(s SystemSpec) string { return s.Name }) }

func (s *SystemSpec) option(name string) *option.Option {
	return first(s.Options, func(o *option.Option) bool { return o.Name == name })
}

// nearOption returns the hint for an unknown option.
func (s *SystemSpec) nearOption(name string) string {
	return suggest.DidYouMean(name, each(s.Options, func(o option.Option) string { return o.Name }))
}

var nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

const nameHint = "letters, digits, dots, dashes and underscores; not `none`"

// systems checks the systems against the catalog and completes them.
func (d *decoder) systems(e *Experiment) {
	d.refuse(len(e.Systems) == 0 && d.at["systems"] != nil, "systems", "name at least one, such as `- nginx`",
		"`systems` is an empty list")
	names := map[string]bool{}
	for i := range e.Systems {
		use, path := &e.Systems[i], fmt.Sprintf("systems[%d]", i)
		if use.Use == "" && d.at[path+".use"] == nil {
			continue // already reported
		}
		use.Name = cmp.Or(use.Name, use.Use)
		d.refuse(!nameRE.MatchString(use.Name) || use.Name == "none", path+".name", nameHint,
			"%q cannot be the name of a system", use.Name)
		d.refuse(names[use.Name], path+".name", "give one of them another `name:`", "two systems are named `%s`", use.Name)
		names[use.Name] = true
		spec := d.cat.find(use.Use)
		if spec == nil {
			d.fail(path+".use", suggest.DidYouMean(use.Use, d.cat.Names()), "unknown system `%s`", use.Use)
			continue
		}
		use.Mode = cmp.Or(use.Mode, spec.Modes[0])
		d.refuse(!slices.Contains(spec.Modes, use.Mode), path+".mode", "its modes: "+strings.Join(spec.Modes, ", "),
			"system `%s` cannot be used with mode `%s`", spec.Name, use.Mode)
		d.with(use, spec, path+".with")
		d.overrides(e, use, path+".override")
	}
}

// asked maps scenarios to what their systems must be able to do: the word in [SystemSpec] and a
// phrase.
var asked = map[string]struct{ can, words string }{
	"retrieve":    {"http", "serve its objects over HTTP"},
	"disseminate": {"spread", "spread content among many nodes"},
	"sync":        {"follow", "follow a chain"},
}

// suits refuses systems that the scenario cannot use.
func (d *decoder) suits(e *Experiment) {
	ask, asks := asked[e.Scenario]
	swarm := e.Scenario == "disseminate" || e.Scenario == "sync"
	for i := range e.Systems {
		use, path := &e.Systems[i], fmt.Sprintf("systems[%d]", i)
		spec := d.cat.find(use.Use)
		if asks && !slices.Contains(spec.Can, ask.can) {
			able := slices.DeleteFunc(slices.Clone(d.cat), func(s SystemSpec) bool { return !slices.Contains(s.Can, ask.can) })
			d.fail(path+".use", "systems that can: "+strings.Join(able.Names(), ", "), "system `%s` cannot %s", spec.Name,
				ask.words)
		}
		use.SeedersOnly = spec.Baseline && e.Scenario == "disseminate"
		d.refuse(swarm && use.Override != nil, path+".override", "make two experiments, or a factor",
			"in %s settings are the same for all systems", e.Scenario)
		d.refuse(swarm && use.Attached(), path+".mode",
			"write `mode: start`; a node that runs already is watched by `plimsoll collect "+use.Use+"`",
			"%s starts the nodes of its systems", e.Scenario)
	}
}

// with reads the options of a system.
func (d *decoder) with(use *SystemUse, spec *SystemSpec, path string) {
	given, n := map[string]string{}, d.at[path]
	if n != nil {
		for _, e := range n.entries {
			if opt := spec.option(e.key.text); opt == nil {
				d.errs = append(d.errs, e.key.errorf(spec.nearOption(e.key.text), "system `%s` has no option `%s`",
					spec.Name, e.key.text))
			} else if text, ok := d.option(spec, opt, e.value, path+"."+opt.Name); ok {
				given[opt.Name] = text
			}
		}
	}
	for i := range spec.Options {
		opt := &spec.Options[i]
		p := path + "." + opt.Name
		if d.at[p] != nil {
			continue
		}
		d.refuse(opt.Required && !d.at[varyPath].has(opt.Name), p, opt.Help, "system `%s` needs the option `%s`",
			spec.Name, opt.Name)
		if opt.Default != "" {
			_, text, err := readOption(opt, opt.Default)
			d.refuse(err != nil, p, "", "system `%s`: the default of the option `%s`: %v", spec.Name, opt.Name, err)
			given[opt.Name] = text
		}
	}
	use.With = given
}

// option reads the value of one option. Errors must not repeat the value: it may be a secret in the
// wrong place.
func (d *decoder) option(spec *SystemSpec, opt *option.Option, n *node, path string) (text string, ok bool) {
	d.at[path] = n
	failed, parts := len(d.errs), []*node{n}
	if opt.Type == "strings" {
		parts = elements(n, field{})
	}
	var lines []string
	for _, part := range parts {
		if part.kind != scalarNode {
			d.fail(path, opt.Help, "option `%s` must be %s, not %s", opt.Name, optionNoun(opt), part.kind)
			return "", false
		}
		lines = append(lines, strings.Split(strings.TrimSpace(part.text), "\n")...)
	}
	text = strings.Join(lines, "\n")
	if opt.Secret {
		return d.secret(opt, text, path)
	}
	if opt.Type != "strings" {
		_, value, err := readOption(opt, n.text)
		hint := opt.Help
		if opt.Type == "bool" {
			hint = "write `" + opt.Name + ": true` or `" + opt.Name + ": false`"
		}
		d.refuse(err != nil, path, hint, "option `%s` must be %s (its value is not shown here)", opt.Name,
			optionNoun(opt))
		text = value
	}
	hint := "take them out; the system has no option for credentials"
	if o := first(spec.Options, func(o *option.Option) bool { return o.Secret }); o != nil {
		hint = "put them into an environment variable and write `" + o.Name + ": MY_VARIABLE`"
	}
	d.refuse(hasCredentials(text), path, hint, "option `%s` has credentials in its URL, and they would be recorded",
		opt.Name)
	return text, len(d.errs) == failed
}

var (
	envRE = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	// A key of only capital letters and digits looks like a variable's name.
	keyRE = regexp.MustCompile(`^[A-Z0-9]*[0-9][A-Z0-9]*$`)
)

// secret reads the name of an environment variable. Errors must not repeat the value: it may be the
// secret itself.
func (d *decoder) secret(opt *option.Option, text, path string) (string, bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "$"), "{"), "}")
	if envRE.MatchString(name) && (len(name) < 16 || !keyRE.MatchString(name)) {
		return name, true
	}
	d.fail(path, "put it into a variable and write `"+opt.Name+": MY_VARIABLE`",
		"option `%s` is a secret: name an environment variable (the value is not shown here)", opt.Name)
	return "", false
}

// overrides reads the settings that apply to this system only.
func (d *decoder) overrides(e *Experiment, use *SystemUse, path string) {
	n := d.at[path]
	section, name := e.section(), e.Scenario
	if n == nil || !section.IsValid() {
		return
	}
	tab := tableOf(section.Type())
	tab.fields = slices.DeleteFunc(slices.Clone(tab.fields), func(f field) bool { return f.label == "" || f.compound() })
	use.Override = map[string]string{}
	for _, en := range n.entries {
		p := path + "." + en.key.text
		d.at[p] = en.value
		f := tab.field(en.key.text)
		switch {
		case f == nil:
			d.fail(p, suggest.DidYouMean(en.key.text, tab.keys()), "`%s` cannot be overridden", en.key.text)
		case d.factors[name+"."+f.key] != nil:
			d.fail(p, "give `"+name+"."+f.key+"` one value, or leave the override away", "`%s` is a factor", f.key)
		default:
			if v := reflect.New(f.typ).Elem(); d.value(en.value, v, *f, p) {
				use.Override[f.key] = f.text(v)
			}
		}
	}
}

// optionTypes maps the types of options that have restricted values.
var optionTypes = map[string]reflect.Type{"size": reflect.TypeFor[Bytes](), "duration": reflect.TypeFor[Duration](),
	"int": reflect.TypeFor[int64](), "bool": reflect.TypeFor[bool]()}

func optionField(name, typ string, enum []string) field {
	return field{key: name, typ: cmp.Or(optionTypes[typ], reflect.TypeFor[string]()), enum: enum}
}

// optionNoun returns a phrase for the values that the option accepts, for errors.
func optionNoun(o *option.Option) string {
	if o.Type == "strings" {
		return "a list of texts"
	}
	f := optionField(o.Name, o.Type, o.Enum)
	return f.noun()
}

// readOption checks one value, and returns it as written in a file and as systems expect it: sizes
// in bytes, durations as in the standard library.
func readOption(o *option.Option, text string) (file, system string, err error) {
	f := optionField(o.Name, o.Type, o.Enum)
	v := reflect.New(f.typ).Elem()
	if err := f.parse(text, v); err != nil {
		return "", "", err
	}
	file = f.text(v)
	switch x := v.Interface().(type) {
	case Bytes:
		return file, strconv.FormatInt(int64(x), 10), nil
	case Duration:
		return file, x.Std().String(), nil
	}
	return file, file, nil
}

// credentials matches a URL with a user name or password, even if other parts of it are invalid.
var credentials = regexp.MustCompile(`^\s*(?:([A-Za-z][A-Za-z0-9+.-]*)://)?` +
	`(?:([^/?#\s@]*)@|[^/?#\s@\[\]]*:[0-9]*[^0-9/?#\s@\]][^\s@]*@)`)

// hasCredentials reports whether a line of text begins with a URL that contains credentials. A user
// name alone in an sftp URL does not count.
func hasCredentials(text string) bool {
	for line := range strings.Lines(text) {
		m := credentials.FindStringSubmatch(line)
		if m != nil && (m[2] == "" || strings.Contains(m[2], ":") || m[1] != "" && m[1] != "sftp") {
			return true
		}
	}
	return false
}
