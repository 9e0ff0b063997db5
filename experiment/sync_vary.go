package experiment

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// varyPath is where options of the systems become factors.
const varyPath = "sync.vary"

// bundleType is the type of a factor whose values are names of sets of options.
const bundleType = "options"

// Varied is a factor made of options of the systems: of one, or of several that
// change together.
type Varied struct {
	Type   string        `json:"type"` // of the values, as in OptionSpec; "options" for names of sets of them
	Levels []VariedLevel `json:"levels"`
	// Network are those of the options that concern the network or the peers alone.
	Network []string `json:"network,omitempty"`
}

// VariedLevel is one value of such a factor.
type VariedLevel struct {
	Value   string            `json:"value"`   // as in the file, canonical; the name of a set of options
	Options map[string]string `json:"options"` // what the systems are given, as in SystemUse.With
}

// values are the levels in words.
func (v Varied) values() []string {
	texts := make([]string, len(v.Levels))
	for i, l := range v.Levels {
		texts[i] = l.Value
	}
	return texts
}

// axis is the factor as others are.
func (v Varied) axis(name string) axisRef {
	f := optionField(name, v.Type, nil)
	f.label = name
	if f.typ.Kind() == reflect.String {
		f.enum = v.values()
	}
	values := reflect.MakeSlice(reflect.SliceOf(f.typ), 0, len(v.Levels))
	for _, l := range v.Levels {
		value := reflect.New(f.typ).Elem()
		if err := f.parse(l.Value, value); err != nil {
			panic(fmt.Sprintf("experiment: %s.%s: %q: %v", varyPath, name, l.Value, err)) // it was read before
		}
		values = reflect.Append(values, value)
	}
	return axisRef{join(varyPath, name), f, values}
}

// varied are the axes of the options, sorted by name: the order of keys in a
// file does not matter.
func (s *Sync) varied() []axisRef {
	var axes []axisRef
	for _, name := range slices.Sorted(maps.Keys(s.Vary)) {
		axes = append(axes, s.Vary[name].axis(name))
	}
	return axes
}

// varies reports whether an option is a factor, whatever is written there.
func (d *decoder) varies(option string) bool {
	n := d.at[varyPath]
	return n != nil && slices.ContainsFunc(n.entries, func(e entry) bool {
		return e.key.text == option || slices.ContainsFunc(e.value.items, func(item *node) bool {
			return slices.ContainsFunc(item.entries, func(set entry) bool { return set.value.get(option) != nil })
		})
	})
}

// vary reads the options of the systems that are factors.
func (d *decoder) vary(e *Experiment) {
	n := d.at[varyPath]
	if n == nil || n.kind != mappingNode || !d.ok("systems") {
		return
	}
	owners := map[string]*node{}
	e.Sync.Vary = map[string]Varied{}
	for _, en := range n.entries {
		v := variedReader{decoder: d, e: e, owners: owners, key: en.key, path: join(varyPath, en.key.text)}
		d.at[v.path] = en.value
		var read Varied
		if slices.ContainsFunc(en.value.items, func(item *node) bool { return item.kind == mappingNode }) {
			read = v.bundle(en.value)
		} else {
			read = v.single(en.value)
		}
		if d.ok(v.path) {
			e.Sync.Vary[en.key.text] = read
		}
	}
}

// variedReader reads one factor.
type variedReader struct {
	*decoder
	e      *Experiment
	owners map[string]*node // the factor that each option belongs to, of all factors
	key    *node
	path   string
}

// single reads the values of one option.
func (v *variedReader) single(n *node) (read Varied) {
	spec, opt := v.option(v.key, v.path)
	switch {
	case opt == nil:
		return read
	case n.kind == nullNode:
		v.fail(v.path, n, "give at least one value, or take the key away", "`%s` has no values", v.path)
		return read
	}
	read.Type = opt.Type
	if opt.Network {
		read.Network = []string{opt.Name}
	}
	f := opt.field()
	f.axis = true
	for _, item := range elements(n, f) {
		if item.kind == scalarNode && v.noCredentials(spec, opt, item, v.path, item.text) {
			item.show()
		}
	}
	values := v.levels(n, v.key, f, v.path)
	for i := 0; i < values.Len() && v.ok(v.path); i++ {
		text := f.text(values.Index(i))
		p := fmt.Sprintf("%s[%d]", v.path, i)
		if text == "" {
			v.fail(p, v.at[p], opt.Help, "`%s`: an empty text is no value", v.path)
		}
		_, canonical, _ := opt.read(text)
		read.Levels = append(read.Levels, VariedLevel{text, map[string]string{opt.Name: canonical}})
	}
	return read
}

// bundle reads a list of named sets of options.
func (v *variedReader) bundle(n *node) (read Varied) {
	switch {
	case !nameRE.MatchString(v.key.text):
		v.fail(v.path, v.key, "letters, digits, dots, dashes and underscores", "%q cannot be the name of a factor", v.key.text)
		return read
	case v.isOption(v.key.text):
		v.fail(v.path, v.key, "give the factor another name", "`%s` is the name of an option, but its values are sets of several", v.key.text)
		return read
	}
	for i, item := range n.items {
		p := fmt.Sprintf("%s[%d]", v.path, i)
		v.at[p] = item
		if item.kind != mappingNode || len(item.entries) != 1 || len(item.entries[0].value.entries) == 0 {
			v.fail(p, item, "each value is a name with its options: `- short: {sync_interval: 500ms}`",
				"`%s` is a list of sets of options, and this is none", v.path)
			continue
		}
		name := item.entries[0].key
		level := v.set(item.entries[0], &read, p)
		if v.ok(p) {
			v.distinct(level, read.Levels, name, p)
		}
		if v.ok(p) {
			read.Levels = append(read.Levels, level)
		}
	}
	read.Type = typeOfAll(read.values())
	return read
}

// set reads a named set of options.
func (v *variedReader) set(en entry, of *Varied, path string) VariedLevel {
	level := VariedLevel{en.key.text, map[string]string{}}
	if !nameRE.MatchString(en.key.text) {
		v.fail(path, en.key, "letters, digits, dots, dashes and underscores", "%q cannot be the name of a set of options", en.key.text)
		return level
	}
	if slices.Contains(of.values(), level.Value) {
		v.fail(path, en.key, "a factor has each of its levels once", "`%s` has the value %s twice", v.path, level.Value)
		return level
	}
	en.key.show()
	for _, o := range en.value.entries {
		at := path + "." + o.key.text
		o.key.show()
		if spec, opt := v.option(o.key, at); opt != nil {
			if text, ok := v.decoder.option(spec, opt, o.value, at); ok {
				level.Options[opt.Name] = text
			}
			if opt.Network && !slices.Contains(of.Network, opt.Name) {
				of.Network = append(of.Network, opt.Name)
			}
		}
	}
	return level
}

// distinct wants a set to have the same options as the first one, and other values than
// all before.
func (v *variedReader) distinct(level VariedLevel, before []VariedLevel, name *node, path string) {
	names := sortedKeys(level.Options)
	for i, other := range before {
		switch first := sortedKeys(other.Options); {
		case i == 0 && !slices.Equal(names, first):
			v.fail(path, name, "name the same options in each, so that the file says what changes", "the set `%s` has the options %s, the first one of `%s` has %s",
				level.Value, strings.Join(names, ", "), v.path, strings.Join(first, ", "))
			return
		case maps.Equal(other.Options, level.Options):
			v.fail(path, name, "a factor has each of its levels once", "the sets `%s` and `%s` are the same", other.Value, level.Value)
			return
		}
	}
}

// typeOfAll is the type of option that all texts are canonical values of, so that
// sets named 2s, 10s and 2m are in order; else "options".
func typeOfAll(texts []string) string {
	for _, typ := range []string{"int", "duration", "size"} {
		f := optionField("", typ, nil)
		if !slices.ContainsFunc(texts, func(text string) bool {
			v := reflect.New(f.typ).Elem()
			return f.parse(text, v) != nil || f.text(v) != text
		}) {
			return typ
		}
	}
	return bundleType
}

// isOption reports whether a system of the experiment has the option.
func (v *variedReader) isOption(name string) bool {
	return slices.ContainsFunc(v.e.Systems, func(use SystemUse) bool { return v.cat.find(use.Use).option(name) != nil })
}

// option is the option that key names, if it can be a factor of all systems.
func (v *variedReader) option(key *node, path string) (spec *SystemSpec, opt *OptionSpec) {
	wrong := func(hint, format string, args ...any) (*SystemSpec, *OptionSpec) {
		v.fail(path, key, hint, format, args...)
		return nil, nil
	}
	for i, use := range v.e.Systems {
		spec = v.cat.find(use.Use)
		o := spec.option(key.text)
		if o == nil {
			hint := spec.unknownOption(key.text)
			if len(v.e.Systems) > 1 && v.isOption(key.text) {
				hint = "every system of the experiment needs it: make two experiments"
			}
			return wrong(hint, "system `%s` has no option `%s`", spec.Name, key.text)
		}
		if opt != nil && opt.Type != o.Type {
			return wrong("make two experiments", "the option `%s` is %s in one system and %s in another", o.Name, opt.Noun(), o.Noun())
		}
		if with := v.at[fmt.Sprintf("systems[%d].with", i)]; with != nil && with.get(o.Name) != nil {
			return wrong("take it away from `with`: the first value of a factor is the default",
				"the option `%s` is a factor, and system `%s` has it in `with`, too", o.Name, use.Name)
		}
		opt = o
	}
	owner := v.owners[opt.Name]
	switch {
	case opt.Secret:
		return wrong("it belongs into `with`, as the name of an environment variable", "the option `%s` is a secret and cannot be a factor", opt.Name)
	case owner != nil && owner != v.key:
		return wrong("let one of them have it", "the option `%s` belongs to the factor `%s`, too", opt.Name, owner.text)
	}
	v.owners[opt.Name] = v.key
	return spec, opt
}

// options are those that the combination sets for the systems, and which of them
// concern the network or the peers alone.
func (c *combination) options() (all map[string]string, network []string) {
	for i, a := range c.axes {
		name, is := strings.CutPrefix(a.path, varyPath+".")
		if !is {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, c.e.Sync.Vary[name].Levels[c.levels[i]].Options)
		network = append(network, c.e.Sync.Vary[name].Network...)
	}
	slices.Sort(network)
	return all, network
}
