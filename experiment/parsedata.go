package experiment

import (
	"errors"
	"fmt"
	"strings"
)

// ParseData reads a data set from the values of keys of the section data, as
// upload takes them. Its errors call a key by name, as messages of a command
// line call its flag.
func ParseData(values map[string]string, name func(key string) string) (Data, error) {
	const file = "scenario: upload\nsystems: [any]\nupload: {}\n"
	var set []string
	for _, f := range Keys() {
		key, is := strings.CutPrefix(f, "data.")
		if text, given := values[key]; is && given {
			if key != "mix" && key != "spread" {
				// In quotes, so that nothing in it is taken for more than a text.
				text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
			}
			set = append(set, f+"="+text)
		}
	}
	e, err := Parse("", []byte(file), set, Catalog{{Name: "any", Modes: []string{"start"}}})
	var all Errors
	switch {
	case errors.As(err, &all):
		return Data{}, flagErrors(all, name)
	case err != nil:
		return Data{}, err
	case e.Factors[dataSizePath] != nil:
		return Data{}, badUnit("", "`%s` takes one size", name("size"))
	}
	p, err := e.Plan()
	if err != nil {
		return Data{}, err
	}
	return p.Cells[0].Data, nil
}

// flagErrors are the mistakes without their places, which are none of a file's.
func flagErrors(all Errors, name func(key string) string) error {
	var errs []error
	for _, e := range all {
		err := fmt.Errorf("%s", renamed(e.Message, name))
		if e.Hint != "" {
			err = badUnit(renamed(e.Hint, name), "%s", err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// renamed has name(key) for each `data.key`.
func renamed(text string, name func(key string) string) string {
	for _, key := range tableOf(dataType).keys() {
		text = strings.ReplaceAll(text, "`data."+key+"`", "`"+name(key)+"`")
	}
	return text
}
