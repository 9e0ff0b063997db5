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
	return each(v.Levels, func(l VariedLevel) string { return l.Value })
}

// axis is the factor as others are.
func (v Varied) axis(name string) axis {
	f := optionField(name, v.Type, nil)
	f.label = name
	if f.typ.Kind() == reflect.String {
		f.enum = v.values()
	}
	var levels []reflect.Value
	for _, l := range v.Levels {
		value := reflect.New(f.typ).Elem()
		if err := f.parse(l.Value, value); err != nil {
			panic(fmt.Sprintf("experiment: %s.%s: %q: %v", varyPath, name, l.Value, err)) // it was read before
		}
		levels = append(levels, value)
	}
	return axis{join(varyPath, name), f, levels}
}

// varied are the axes of the options, sorted by name: the order of keys in a
// file does not matter.
func (s *Sync) varied() []axis {
	var axes []axis
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
	if n == nil || e.Sync == nil {
		return
	}
	owners := map[string]string{}
	e.Sync.Vary = map[string]Varied{}
	for _, en := range n.entries {
		path := join(varyPath, en.key.text)
		d.at[path] = en.value
		if !nameRE.MatchString(en.key.text) {
			d.fail(path, nameHint, "%q cannot be the name of a factor", en.key.text)
		}
		v := variedReader{d, e.Systems, owners, en.key.text, path}
		e.Sync.Vary[en.key.text] = v.read(elements(en.value, field{}))
	}
}

// variedReader reads one factor.
type variedReader struct {
	*decoder
	systems []SystemUse
	owners  map[string]string // the factor that each option belongs to, of all factors
	name    string
	path    string
}

// read reads values of the option that the factor is named after, or named sets of options.
func (v *variedReader) read(items []*node) (read Varied) {
	if len(items) == 0 {
		v.fail(v.path, "give at least one value, or take the key away", "`%s` has no values", v.path)
	}
	for i, item := range items {
		p, failed := fmt.Sprintf("%s[%d]", v.path, i), len(v.errs)
		v.at[p] = item
		level := v.level(&read, item, p)
		var first []string
		if len(read.Levels) > 0 {
			first = sortedKeys(read.Levels[0].Options)
		}
		switch {
		case len(v.errs) > failed:
		case len(level.Options) == 0 || level.Value == "",
			item.kind == mappingNode && !nameRE.MatchString(level.Value):
			v.fail(p, "a value of the option, or a name with options: `- short: {sync_interval: 500ms}`",
				"`%s`: this is no value", v.path)
		case slices.ContainsFunc(read.Levels, func(l VariedLevel) bool {
			return l.Value == level.Value || maps.Equal(l.Options, level.Options)
		}):
			v.fail(p, "a factor has each of its levels once", "`%s` has the value %s twice", v.path, level.Value)
		case first != nil && !slices.Equal(sortedKeys(level.Options), first):
			v.fail(p, "name the same options in each, so that the file says what changes",
				"the set `%s` has the options %s, the first one of `%s` has %s", level.Value,
				strings.Join(sortedKeys(level.Options), ", "), v.path, strings.Join(first, ", "))
		default:
			read.Levels = append(read.Levels, level)
		}
	}
	if read.Type == "" || slices.ContainsFunc(items, func(item *node) bool { return item.kind == mappingNode }) {
		read.Type = typeOfAll(read.values())
	}
	return read
}

// level reads a value of the option or a named set of options.
func (v *variedReader) level(of *Varied, item *node, path string) VariedLevel {
	set, bare := []entry{{item.scalar(v.name), item}}, true
	level := VariedLevel{item.text, map[string]string{}}
	if item.kind == mappingNode && len(item.entries) == 1 {
		level.Value, set, bare = item.entries[0].key.text, item.entries[0].value.entries, false
	}
	for _, o := range set {
		spec, opt := v.option(o.key, path)
		if opt == nil {
			continue
		}
		if text, ok := v.decoder.option(spec, opt, o.value, path); ok {
			level.Options[opt.Name] = text
		}
		if bare {
			of.Type = opt.Type
			level.Value, _, _ = opt.read(item.text)
		}
		if opt.Network && !slices.Contains(of.Network, opt.Name) {
			of.Network = append(of.Network, opt.Name)
		}
	}
	return level
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

// option is the option that key names, if it can be a factor of all systems.
func (v *variedReader) option(key *node, path string) (spec *SystemSpec, opt *OptionSpec) {
	for _, use := range v.systems {
		spec = v.cat.find(use.Use)
		o := spec.option(key.text)
		switch {
		case o == nil:
			v.fail(path, spec.unknownOption(key.text), "system `%s` has no option `%s`", spec.Name, key.text)
		case opt != nil && opt.Type != o.Type:
			v.fail(path, "make two experiments", "the option `%s` is %s in one system and %s in another", o.Name,
				opt.Noun(), o.Noun())
		case o.Secret:
			v.fail(path, "it belongs into `with`, as the name of an environment variable",
				"the option `%s` is a secret and cannot be a factor", o.Name)
		case v.owners[o.Name] != "" && v.owners[o.Name] != v.name:
			v.fail(path, "let one of them have it", "the option `%s` belongs to the factor `%s`, too", o.Name,
				v.owners[o.Name])
		default:
			opt = o
			continue
		}
		return nil, nil
	}
	v.owners[key.text] = v.name
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
