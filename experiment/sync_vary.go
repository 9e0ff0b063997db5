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
		path := join(varyPath, en.key.text)
		d.at[path] = en.value
		v := variedReader{d, e.Systems, owners, en.key, path}
		if read := v.read(en.value); d.ok(path) {
			e.Sync.Vary[en.key.text] = read
		}
	}
}

// variedReader reads one factor.
type variedReader struct {
	*decoder
	systems []SystemUse
	owners  map[string]*node // the factor that each option belongs to, of all factors
	key     *node
	path    string
}

// read reads a list of values of the option that the factor is named after, or of named
// sets of options.
func (v *variedReader) read(n *node) (read Varied) {
	items := elements(n, field{})
	switch {
	case n.kind == nullNode || len(items) == 0:
		v.fail(v.path, n, "give at least one value, or take the key away", "`%s` has no values", v.path)
		return read
	case !nameRE.MatchString(v.key.text):
		v.fail(v.path, v.key, "letters, digits, dots, dashes and underscores", "%q cannot be the name of a factor",
			v.key.text)
	}
	for i, item := range items {
		p := fmt.Sprintf("%s[%d]", v.path, i)
		v.at[p] = item
		name, level := v.level(&read, item, p)
		switch values := read.values(); {
		case !v.ok(p):
		case (item.kind == mappingNode) != (items[0].kind == mappingNode):
			v.fail(p, item, "make it a list of values, or a list of named sets",
				"`%s` has both values of the option and sets of options", v.path)
		case len(level.Options) == 0 || item.kind == mappingNode && len(item.entries) != 1 || level.Value == "":
			v.fail(p, item, "a value of the option, or a name with options: `- short: {sync_interval: 500ms}`",
				"`%s`: this is no value", v.path)
		case item.kind == mappingNode && !nameRE.MatchString(level.Value):
			v.fail(p, name, "letters, digits, dots, dashes and underscores",
				"%q cannot be the name of a set of options", level.Value)
		case slices.Contains(values, level.Value):
			v.fail(p, name, "a factor has each of its levels once", "`%s` has the value %s twice", v.path, level.Value)
		case len(values) > 0 && !slices.Equal(sortedKeys(level.Options), sortedKeys(read.Levels[0].Options)):
			v.fail(p, name, "name the same options in each, so that the file says what changes",
				"the set `%s` has the options %s, the first one of `%s` has %s",
				level.Value, strings.Join(sortedKeys(level.Options), ", "), v.path,
				strings.Join(sortedKeys(read.Levels[0].Options),
					", "))
		case slices.ContainsFunc(read.Levels, func(l VariedLevel) bool { return maps.Equal(l.Options, level.Options) }):
			v.fail(p, name, "a factor has each of its levels once", "the set `%s` of `%s` is the same as one before it",
				level.Value, v.path)
		default:
			read.Levels = append(read.Levels, level)
		}
	}
	if read.Type == "" {
		read.Type = typeOfAll(read.values())
	}
	return read
}

// level reads a value of the option or a named set of options, and where its name is.
func (v *variedReader) level(of *Varied, item *node, path string) (name *node, level VariedLevel) {
	name, set := item, []entry{{v.key, item}}
	if item.kind == mappingNode && len(item.entries) == 1 {
		name, set = item.entries[0].key, item.entries[0].value.entries
	}
	level = VariedLevel{name.text, map[string]string{}}
	for _, o := range set {
		spec, opt := v.option(o.key, path)
		if opt == nil {
			continue
		}
		if text, ok := v.decoder.option(spec, opt, o.value, path); ok {
			level.Options[opt.Name] = text
		}
		if name == item {
			of.Type = opt.Type
			level.Value, _, _ = opt.read(item.text)
		}
		if opt.Network && !slices.Contains(of.Network, opt.Name) {
			of.Network = append(of.Network, opt.Name)
		}
	}
	return name, level
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
	for i, use := range v.systems {
		spec = v.cat.find(use.Use)
		o := spec.option(key.text)
		with := v.at[fmt.Sprintf("systems[%d].with", i)]
		switch {
		case o == nil:
			v.fail(path, key, spec.unknownOption(key.text), "system `%s` has no option `%s`", spec.Name, key.text)
		case opt != nil && opt.Type != o.Type:
			v.fail(path, key, "make two experiments", "the option `%s` is %s in one system and %s in another", o.Name,
				opt.Noun(), o.Noun())
		case o.Secret:
			v.fail(path, key, "it belongs into `with`, as the name of an environment variable",
				"the option `%s` is a secret and cannot be a factor", o.Name)
		case with != nil && with.get(o.Name) != nil:
			v.fail(path, key, "take it away from `with`: the first value of a factor is the default",
				"the option `%s` is a factor, and system `%s` has it in `with`, too", o.Name, use.Name)
		default:
			opt = o
			continue
		}
		return nil, nil
	}
	if owner := v.owners[opt.Name]; owner != nil && owner != v.key {
		v.fail(path, key, "let one of them have it", "the option `%s` belongs to the factor `%s`, too", opt.Name,
			owner.text)
		return nil, nil
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
