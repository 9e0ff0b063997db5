package experiment

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/option"
)

// varyPath is the path of the options that are factors.
const varyPath = "sync.vary"

// bundleType is the type of a factor whose values are names of sets of options.
const bundleType = "options"

// Varied is a factor that consists of one option of the systems, or of several that change
// together.
type Varied struct {
	Type   string        `json:"type"` // of the values, as in option.Option; "options" for names of sets of options
	Levels []VariedLevel `json:"levels"`
	// Network lists the options that affect only the network or the peers.
	Network []string `json:"network,omitempty"`
}

// VariedLevel is one level of a Varied.
type VariedLevel struct {
	Value   string            `json:"value"`   // as in the file, canonical; the name of a set of options
	Options map[string]string `json:"options"` // set for the systems, as in SystemUse.With
}

// values returns the texts of the levels.
func (v Varied) values() []string {
	return each(v.Levels, func(l VariedLevel) string { return l.Value })
}

// axis converts the factor to an axis.
func (v Varied) axis(name string) axis {
	f := optionField(name, v.Type, nil)
	f.label = name
	if f.typ.Kind() == reflect.String {
		f.enum = v.values()
	}
	return axis{join(varyPath, name), f, each(v.values(), f.constant)}
}





// vary reads the options of the systems that are factors.
func (d *decoder) vary(e *Experiment) {
	n := d.at[varyPath]
	if n == nil || e.Sync == nil {
		return
	}
	e.Sync.Vary = map[string]Varied{}
	d.owners = map[string]string{}
	for _, factor := range n.entries {
		name, path := factor.key.text, join(varyPath, factor.key.text)
		d.at[path] = factor.value
		d.refuse(!nameRE.MatchString(name), path, nameHint, "%q cannot be the name of a factor", name)
		items, v := elements(factor.value, field{}), Varied{}
		d.refuse(len(items) == 0, path, "give at least one value, or take the key away", "`%s` has no values", path)
		for i, item := range items {
			p, failed := fmt.Sprintf("%s[%d]", path, i), len(d.errs)
			d.at[p] = item
			level := d.variedLevel(e, name, item, p, &v)
			same := func(l VariedLevel) bool { return l.Value == level.Value || maps.Equal(l.Options, level.Options) }
			switch {
			case len(d.errs) > failed:
			case len(level.Options) == 0 || level.Value == "" || item.kind == mappingNode && !nameRE.MatchString(level.Value):
				d.fail(p, "a value, or a name with options: `- short: {sync_interval: 500ms}`", "`%s`: no value", path)
			case slices.ContainsFunc(v.Levels, same):
				d.fail(p, "a factor has each of its levels once", "`%s` has the value %s twice", path, level.Value)
			default:
				v.Levels = append(v.Levels, level)
			}
		}
		if slices.ContainsFunc(items, func(item *node) bool { return item.kind == mappingNode }) {
			v.Type = typeOfAll(v.values())
		}
		e.Sync.Vary[name] = v
	}
}

// variedLevel reads one level of a factor: a value of the option with the factor's name, or a name
// with options.
func (d *decoder) variedLevel(e *Experiment, name string, item *node, path string, v *Varied) VariedLevel {
	level, set := VariedLevel{item.text, map[string]string{}}, []entry{{item.scalar(name), item}}
	bare := item.kind != mappingNode || len(item.entries) != 1
	if !bare {
		level.Value, set = item.entries[0].key.text, item.entries[0].value.entries
	}
	for _, o := range set {
		spec, opt := d.factorOption(e, name, o.key.text, path)
		if opt == nil {
			continue
		}
		if text, ok := d.option(spec, opt, o.value, path); ok {
			level.Options[opt.Name] = text
		}
		if bare {
			v.Type = opt.Type
			level.Value, _, _ = readOption(opt, item.text)
		}
		if opt.Network && !slices.Contains(v.Network, opt.Name) {
			v.Network = append(v.Network, opt.Name)
		}
	}
	return level
}

// typeOfAll returns the type of option for which all texts are canonical values, so that sets named
// 2s, 10s and 2m are ordered; otherwise "options".
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

// factorOption returns the option for a factor if all systems have it and allow that, and nil
// otherwise.
func (d *decoder) factorOption(e *Experiment, name, key, path string) (spec *SystemSpec, opt *option.Option) {
	for _, use := range e.Systems {
		spec = d.cat.find(use.Use)
		o := spec.option(key)
		switch {
		case o == nil:
			d.fail(path, spec.nearOption(key), "system `%s` has no option `%s`", spec.Name, key)
		case opt != nil && opt.Type != o.Type:
			d.fail(path, "make two experiments", "option `%s` is not the same in all systems", key)
		case o.Secret:
			d.fail(path, "give it in `with`", "option `%s` is a secret and cannot be a factor", key)
		case d.owners[key] != "" && d.owners[key] != name:
			d.fail(path, "let one of them have it", "option `%s` is in the factor `%s`, too", key, d.owners[key])
		default:
			opt = o
			continue
		}
		return nil, nil
	}
	d.owners[key] = name
	return spec, opt
}

// options returns the options that the combination sets for the systems, and the names of those
// that affect only the network or the peers.
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
