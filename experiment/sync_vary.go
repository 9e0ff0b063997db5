package experiment

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
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
	if n == nil {
		return false
	}
	for _, e := range n.entries {
		if e.key.text == option {
			return true
		}
		for _, item := range e.value.items {
			for _, level := range item.entries {
				if level.value.get(option) != nil {
					return true
				}
			}
		}
	}
	return false
}

// vary reads the options of the systems that are factors.
func (d *decoder) vary(e *Experiment) {
	n := d.at[varyPath]
	if n == nil || n.kind != mappingNode || !d.ok("systems") {
		return
	}
	v := variedReader{d: d, e: e, by: map[string]*node{}}
	e.Sync.Vary = map[string]Varied{}
	for _, entry := range n.entries {
		path := join(varyPath, entry.key.text)
		d.at[path] = entry.value
		bundle := slices.ContainsFunc(entry.value.items, func(item *node) bool { return item.kind == mappingNode })
		var read Varied
		var ok bool
		if bundle {
			read, ok = v.bundle(entry, path)
		} else {
			read, ok = v.single(entry, path)
		}
		if ok {
			e.Sync.Vary[entry.key.text] = read
		}
	}
}

// variedReader reads the factors of one file.
type variedReader struct {
	d  *decoder
	e  *Experiment
	by map[string]*node // the factor that each option belongs to
}

// single reads the values of one option.
func (v *variedReader) single(en entry, path string) (Varied, bool) {
	d, n := v.d, en.value
	spec, opt := v.option(en.key, en.key, path)
	switch {
	case opt == nil:
		return Varied{}, false
	case n.kind == nullNode:
		d.fail(path, n, "give at least one value, or take the key away", "`%s` has no values", path)
		return Varied{}, false
	}
	read := Varied{Type: opt.Type}
	if opt.Network {
		read.Network = []string{opt.Name}
	}
	f := opt.field()
	f.axis = true
	for _, item := range elements(n, f) {
		item.show()
	}
	values := d.levels(n, en.key, f, path)
	for i := 0; i < values.Len() && d.ok(path); i++ {
		text := f.text(values.Index(i))
		p := fmt.Sprintf("%s[%d]", path, i)
		if !d.noCredentials(spec, opt, d.at[p], p, text) {
			d.at[p].hide()
			continue
		}
		if text == "" {
			d.fail(p, d.at[p], opt.Help, "`%s`: an empty text is no value", path)
		}
		_, canonical, _ := opt.read(text)
		read.Levels = append(read.Levels, VariedLevel{text, map[string]string{opt.Name: canonical}})
	}
	return read, d.ok(path)
}

// bundle reads a list of named sets of options.
func (v *variedReader) bundle(en entry, path string) (Varied, bool) {
	d := v.d
	const example = "each value is a name with its options: `- short: {sync_interval: 500ms}`"
	if !nameRE.MatchString(en.key.text) {
		d.fail(path, en.key, "letters, digits, dots, dashes and underscores", "%q cannot be the name of a factor", en.key.text)
		return Varied{}, false
	}
	if v.isOption(en.key.text) {
		d.fail(path, en.key, "give the factor another name", "`%s` is the name of an option, but its values are sets of several", en.key.text)
		return Varied{}, false
	}
	read := Varied{}
	var first []string // the options of the first value
	for i, item := range en.value.items {
		p := fmt.Sprintf("%s[%d]", path, i)
		d.at[p] = item
		if item.kind != mappingNode || len(item.entries) != 1 || item.entries[0].value.kind != mappingNode || len(item.entries[0].value.entries) == 0 {
			d.fail(p, item, example, "`%s` is a list of sets of options, and this is none", path)
			continue
		}
		name, set := item.entries[0].key, item.entries[0].value
		switch {
		case !nameRE.MatchString(name.text):
			d.fail(p, name, "letters, digits, dots, dashes and underscores", "%q cannot be the name of a set of options", name.text)
			continue
		case slices.Contains(read.values(), name.text):
			d.fail(p, name, "a factor has each of its levels once", "`%s` has the value %s twice", path, name.text)
			continue
		}
		level := VariedLevel{name.text, map[string]string{}}
		name.show()
		for _, o := range set.entries {
			at := p + "." + o.key.text
			o.key.show()
			if spec, opt := v.option(o.key, en.key, at); opt != nil {
				if text, ok := d.option(spec, opt, o.value, at); ok {
					level.Options[opt.Name] = text
				}
				if opt.Network && !slices.Contains(read.Network, opt.Name) {
					read.Network = append(read.Network, opt.Name)
				}
			}
		}
		if !d.ok(p) {
			continue
		}
		names := slices.Sorted(maps.Keys(level.Options))
		switch {
		case first == nil:
			first = names
		case !slices.Equal(names, first):
			d.fail(p, name, "name the same options in each, so that the file says what changes", "the set `%s` has the options %s, the first one of `%s` has %s", name.text, strings.Join(names, ", "), path, strings.Join(first, ", "))
			continue
		}
		if same := slices.IndexFunc(read.Levels, func(l VariedLevel) bool { return maps.Equal(l.Options, level.Options) }); same >= 0 {
			d.fail(p, name, "a factor has each of its levels once", "the sets `%s` and `%s` are the same", read.Levels[same].Value, name.text)
			continue
		}
		read.Levels = append(read.Levels, level)
	}
	read.Type = typeOfAll(read.values())
	return read, d.ok(path)
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
	return slices.ContainsFunc(v.e.Systems, func(use SystemUse) bool {
		spec := v.d.cat.find(use.Use)
		return spec != nil && spec.option(name) != nil
	})
}

// option is the option that key names, if it can be a factor of all systems. owner
// is the factor's key.
func (v *variedReader) option(key, owner *node, path string) (*SystemSpec, *OptionSpec) {
	d := v.d
	var spec *SystemSpec
	var opt *OptionSpec
	for i, use := range v.e.Systems {
		if spec = d.cat.find(use.Use); spec == nil {
			return nil, nil
		}
		o := spec.option(key.text)
		if o == nil {
			v.unknown(spec, key, path)
			return nil, nil
		}
		if opt != nil && opt.Type != o.Type {
			d.fail(path, key, "make two experiments", "the option `%s` is %s in one system and %s in another", o.Name, opt.noun(), o.noun())
			return nil, nil
		}
		if with := d.at[fmt.Sprintf("systems[%d].with", i)]; with != nil && with.get(o.Name) != nil {
			d.fail(path, key, "take it away from `with`: the first value of a factor is the default", "the option `%s` is a factor, and system `%s` has it in `with`, too", o.Name, use.Name)
			return nil, nil
		}
		opt = o
	}
	if opt == nil {
		return nil, nil
	}
	if opt.Secret {
		d.fail(path, key, "it belongs into `with`, as the name of an environment variable", "the option `%s` is a secret and cannot be a factor", opt.Name)
		return nil, nil
	}
	if before := v.by[opt.Name]; before != nil && before != owner {
		d.fail(path, key, "let one of them have it", "the option `%s` belongs to the factor `%s`, too", opt.Name, before.text)
		return nil, nil
	}
	v.by[opt.Name] = owner
	return spec, opt
}

// unknown says that a system has no such option.
func (v *variedReader) unknown(spec *SystemSpec, key *node, path string) {
	var names []string
	for _, o := range spec.Options {
		names = append(names, o.Name)
	}
	hint := suggest.DidYouMean(key.text, names)
	switch {
	case len(names) == 0:
		hint = "it has none"
	case len(v.e.Systems) > 1 && v.isOption(key.text):
		hint = "every system of the experiment needs it: make two experiments"
	}
	v.d.fail(path, key, hint, "system `%s` has no option `%s`", spec.Name, key.text)
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
