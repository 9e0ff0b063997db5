package experiment

import (
	"bytes"
	_ "embed"
	"fmt"
	"reflect"
	"strings"
	"text/template"
)

//go:embed reference.md.tmpl
var referenceText string

// Reference is the page docs/experiment-format.md: prose around tables made
// from the struct tags and, when there is one, the catalog.
func Reference(cat Catalog) ([]byte, error) {
	t, err := template.New("reference").Parse(referenceText)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]string{
		"Values":  valuesText(),
		"Keys":    keysText(),
		"Systems": systemsText(cat),
		"Paths":   pathsText(),
	})
	return b.Bytes(), err
}

// kinds are the scalar types of the format, in the order of the page.
func kinds() []scalarKind {
	return []scalarKind{
		Bytes(0).describe(), BitRate(0).describe(), Duration(0).describe(),
		Fraction(0).describe(), OpRate(0).describe(),
		formOf("money").kind, formOf("budget").kind, formOf("price").kind, Part{}.describe(), When{}.describe(), Stay{}.describe(),
	}
}

func valuesText() string {
	var b strings.Builder
	for _, k := range kinds() {
		fmt.Fprintf(&b, "- **%s**: %s\n", k.name, k.doc)
	}
	return b.String()
}

func keysText() string {
	var b strings.Builder
	var section func(t reflect.Type, path, doc string)
	section = func(t reflect.Type, path, doc string) {
		tab := tableOf(t)
		if path != "" {
			fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", path, doc)
			if tab.short != nil {
				fmt.Fprintf(&b, "\nA bare value is short for `%s`.\n", strings.Join(tab.short, "` and `"))
			}
			b.WriteString("\n")
		}
		b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
		for _, f := range tab.fields {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.key, f.valueText(), f.defaultText(), f.describeInTable())
		}
		for _, f := range tab.fields {
			if sub := f.section(); sub != nil {
				section(sub, join(path, f.key), f.doc)
			}
		}
	}
	section(reflect.TypeFor[Experiment](), "", "")
	return b.String()
}

// valueText is the type of f in the table of keys.
func (f *field) valueText() string {
	var text string
	switch {
	case f.enum != nil && f.list():
		return "list of `" + strings.Join(f.enum, "`, `") + "`"
	case f.enum != nil:
		text = "`" + strings.Join(f.enum, "`, `") + "`"
	case f.typ.Kind() == reflect.Map:
		return "mapping"
	case f.section() != nil && f.list():
		return "list of mappings"
	case f.section() != nil:
		return "mapping"
	case f.list():
		return "list of texts"
	default:
		text = f.kind().name
		if f.zero != "" {
			text += " or `" + f.zero + "`"
		}
	}
	if f.axis {
		text += " *(factor)*"
	}
	return text
}

func (f *field) defaultText() string {
	switch {
	case f.required:
		return "*required*"
	case f.def != "":
		return "`" + f.def + "`"
	}
	return ""
}

func (f *field) describeInTable() string {
	text := f.doc + f.only()
	if f.min != "" && f.min != "0" {
		text += " At least " + f.min + "."
	}
	if f.max != "" {
		text += " At most " + f.max + "."
	}
	return strings.ReplaceAll(text, "|", "\\|")
}

// pathsText lists what can be a factor.
func pathsText() string {
	var paths []string
	walk(reflect.TypeFor[Experiment](), "", func(path string, f field) {
		switch {
		case f.axis:
			paths = append(paths, "`"+path+"`")
		case path == varyPath:
			paths = append(paths, "`"+path+".NAME`")
		}
	})
	return strings.Join(paths, ", ")
}

func systemsText(cat Catalog) string {
	if len(cat) == 0 {
		return "`plimsoll systems` lists the systems with their modes and options.\n"
	}
	var b strings.Builder
	for _, s := range cat {
		fmt.Fprintf(&b, "### `%s`\n\n%s. Modes: `%s`.\n", s.Name, strings.TrimSuffix(s.Summary, "."), strings.Join(s.Modes, "`, `"))
		if len(s.Options) > 0 {
			b.WriteString("\n| option | value | default | meaning |\n|---|---|---|---|\n")
		}
		for _, o := range s.Options {
			value := o.noun()
			if o.Secret {
				value = "name of an environment variable"
			}
			def := ""
			if o.Default != "" {
				def = "`" + o.defaultText() + "`"
			}
			if o.Required {
				def = "*required*"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.Name, value, def, strings.ReplaceAll(o.Help, "|", "\\|"))
		}
		b.WriteString("\n")
	}
	return b.String()
}
