package experiment

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

var nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// systems checks the systems against the catalog and completes them.
func (d *decoder) systems(e *Experiment) {
	if !d.ok("systems") && len(e.Systems) == 0 {
		return
	}
	if len(e.Systems) == 0 {
		d.fail("systems", d.at["systems"], "name at least one, such as `- nginx`", "`systems` is an empty list")
		return
	}
	names := map[string]*node{}
	for i := range e.Systems {
		use := &e.Systems[i]
		path := fmt.Sprintf("systems[%d]", i)
		if d.at[path+".use"] == nil {
			continue // that is reported already
		}
		if use.Name == "" {
			use.Name = use.Use
		}
		at := d.first(path+".name", path+".use", path)
		if !nameRE.MatchString(use.Name) || use.Name == "none" {
			d.fail(path+".name", at, "letters, digits, dots, dashes and underscores; not `none`",
				"%q cannot be the name of a system", use.Name)
		} else if first := names[use.Name]; first != nil {
			d.fail(path+".name", at, "give one of them another `name:`", "two systems are named `%s`, the first %s",
				use.Name, first.place())
		}
		names[use.Name] = at
		spec := d.cat.find(use.Use)
		if spec == nil {
			d.fail(path+".use", d.first(path+".use", path), suggest.DidYouMean(use.Use, d.cat.names()),
				"unknown system `%s`",
				use.Use)
			continue
		}
		d.system(e, use, spec, path)
	}
}

// first is the node given for the first of the paths that has one.
func (d *decoder) first(paths ...string) *node {
	for _, p := range paths {
		if n := d.at[p]; n != nil {
			return n
		}
	}
	return nil
}

func (d *decoder) system(e *Experiment, use *SystemUse, spec *SystemSpec, path string) {
	switch {
	case use.Mode == "" && slices.Contains(spec.Modes, "start"):
		use.Mode = "start"
	case use.Mode == "" && len(spec.Modes) > 0:
		use.Mode = spec.Modes[0]
	case use.Mode != "" && !slices.Contains(spec.Modes, use.Mode):
		d.fail(path+".mode", d.first(path+".mode", path), "its modes: "+strings.Join(spec.Modes, ", "),
			"system `%s` cannot be used with mode `%s`", spec.Name, use.Mode)
	}
	d.with(use, spec, path)
	d.overrides(e, use, path)
	if d.ok(path) {
		d.suits(e, use, spec, path)
	}
}

// asked is what a scenario asks of its systems.
var asked = map[string]struct {
	of   func(*SystemSpec) bool
	what string
}{
	"retrieve":    {func(s *SystemSpec) bool { return s.HTTP }, "serve its objects over HTTP"},
	"disseminate": {func(s *SystemSpec) bool { return s.Spreads }, "spread content among many nodes"},
	"sync":        {func(s *SystemSpec) bool { return s.Follows }, "follow a chain"},
}

// suits refuses a system that the scenario cannot use.
func (d *decoder) suits(e *Experiment, use *SystemUse, spec *SystemSpec, path string) {
	if ask, is := asked[e.Scenario]; is && !ask.of(spec) {
		var can []string
		for i := range d.cat {
			if ask.of(&d.cat[i]) {
				can = append(can, d.cat[i].Name)
			}
		}
		d.fail(path+".use", d.first(path+".use", path), "systems that can: "+strings.Join(can, ", "),
			"system `%s` cannot %s, which the scenario %s needs", spec.Name, ask.what, e.Scenario)
		return
	}
	if e.Scenario != "disseminate" && e.Scenario != "sync" {
		return
	}
	if n := d.at[path+".override"]; n != nil {
		d.fail(path+".override", n, "make two experiments, or a factor",
			"system `%s` cannot have settings of its own: in the scenario %s they are the same for all", use.Name,
			e.Scenario)
	}
	if e.Scenario == "disseminate" {
		use.Alone = spec.Baseline
		if use.Mode == "attach" {
			d.fail(path+".mode", d.first(path+".mode", path+".use", path), "take `mode` away, or write `mode: start`",
				"system `%s` is attached, but the nodes of a swarm are started here, each on a link of its own",
				use.Name)
		}
	}
}

// with reads the options of a system.
func (d *decoder) with(use *SystemUse, spec *SystemSpec, path string) {
	n := d.at[path+".with"]
	given := map[string]string{}
	if n == nil {
		n = &node{}
	}
	for _, e := range n.entries {
		opt := spec.option(e.key.text)
		if opt == nil {
			d.errs = append(d.errs, e.key.errorf(spec.unknownOption(e.key.text), "system `%s` has no option `%s`",
				spec.Name, e.key.text))
		} else if text, ok := d.option(spec, opt, e.value, path+".with."+opt.Name); ok {
			given[opt.Name] = text
		}
	}
	for i := range spec.Options {
		opt := &spec.Options[i]
		switch {
		case given[opt.Name] != "" || n.get(opt.Name) != nil, opt.Required && d.varies(opt.Name):
		case opt.Required:
			p := path + ".with." + opt.Name
			d.fail(p, d.first(path+".with", path+".use", path), opt.Help, "system `%s` needs the option `%s`",
				spec.Name, opt.Name)
		case opt.Default != "":
			_, text, err := opt.read(opt.Default)
			if err != nil {
				text = opt.Default // the catalog's own: the system will judge
			}
			given[opt.Name] = text
		}
	}
	if len(given) > 0 {
		use.With = given
	}
}

// option reads the value of one option. An error here does not repeat it: it may
// be a secret in the wrong place.
func (d *decoder) option(spec *SystemSpec, opt *OptionSpec, n *node, path string) (string, bool) {
	if opt.Secret {
		return d.secret(opt, n, path)
	}
	if opt.Type == "strings" && n.kind != mappingNode && n.kind != nullNode {
		var lines []string
		for _, item := range elements(n, field{}) {
			if item.kind != scalarNode {
				d.fail(path, item, "", "option `%s` must be a list of texts, not hold %s", opt.Name, item.kind)
				return "", false
			}
			lines = append(lines, strings.Split(strings.TrimSpace(item.text), "\n")...)
		}
		text := strings.Join(lines, "\n")
		return text, d.noCredentials(spec, opt, n, path, text)
	}
	if n.kind != scalarNode {
		d.fail(path, n, opt.Help, "option `%s` must be %s, not %s", opt.Name, opt.Noun(), n.kind)
		return "", false
	}
	_, text, err := opt.read(n.text)
	if err != nil {
		d.fail(path, n, opt.Help, "option `%s` must be %s (its value is not shown here)", opt.Name, opt.Noun())
		return "", false
	}
	return text, d.noCredentials(spec, opt, n, path, text)
}

// noCredentials refuses a URL with a password in it: it would be recorded.
func (d *decoder) noCredentials(spec *SystemSpec, opt *OptionSpec, n *node, path, text string) bool {
	if !hasCredentials(text) {
		return true
	}
	var secrets []string
	for _, o := range spec.Options {
		if o.Secret {
			secrets = append(secrets, "`"+o.Name+": MY_VARIABLE`")
		}
	}
	hint := "take them out; the system has no option for credentials"
	if len(secrets) > 0 {
		hint = "take them out, put them into an environment variable and write " + strings.Join(secrets, " or ")
	}
	d.fail(path, n, hint, "option `%s` has credentials in its URL, and they would be recorded", opt.Name)
	return false
}

var (
	envRE = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	// A key in capital letters and digits alone looks like a variable's name.
	keyRE = regexp.MustCompile(`^[A-Z0-9]{16,}$`)
)

// secret reads the name of an environment variable. An error here must not
// repeat the value: it may be the secret itself.
func (d *decoder) secret(opt *OptionSpec, n *node, path string) (string, bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(n.text, "$"), "{"), "}")
	if n.kind == scalarNode && envRE.MatchString(name) && (!keyRE.MatchString(name) ||
		!strings.ContainsAny(name, "0123456789")) {
		return name, true
	}
	d.fail(path, n, "keep secrets out of files: put it into a variable and write `"+opt.Name+": MY_VARIABLE`",
		"option `%s` is a secret: give the name of an environment variable, in capitals (the value is not shown here)",
		opt.Name)
	return "", false
}

// scenarioSection is the struct of the chosen scenario's section and the key
// it has, or an invalid value.
func (e *Experiment) scenarioSection() (reflect.Value, string) {
	v := reflect.ValueOf(e).Elem()
	if f := tableOf(v.Type()).field(e.Scenario); f != nil {
		return reflect.Indirect(v.Field(f.index)), e.Scenario
	}
	return reflect.Value{}, ""
}

// overrides reads the settings that are this system's own.
func (d *decoder) overrides(e *Experiment, use *SystemUse, path string) {
	n := d.at[path+".override"]
	section, name := e.scenarioSection()
	if n == nil || !section.IsValid() {
		return
	}
	tab := tableOf(section.Type())
	tab.fields = slices.DeleteFunc(tab.fields, func(f field) bool { return !f.axis || f.compound() })
	for _, en := range n.entries {
		p := path + ".override." + en.key.text
		f := tab.field(en.key.text)
		if f == nil {
			d.fail(p, en.key, suggest.DidYouMean(en.key.text, tab.keys()), "`%s` cannot be overridden for one system",
				en.key.text)
			continue
		}
		if e.Factors[name+"."+f.key] != nil {
			d.fail(p, en.key, "give `"+name+"."+f.key+"` one value, or leave the override away",
				"`%s` is a factor of this experiment, so no system can have its own", f.key)
			continue
		}
		v := reflect.New(f.typ).Elem()
		one := *f
		one.axis = false
		if !d.scalar(en.value, v, one, p) {
			continue
		}
		if use.Override == nil {
			use.Override = map[string]string{}
		}
		use.Override[f.key] = f.text(v)
	}
}
