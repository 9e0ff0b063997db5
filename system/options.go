package system

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
)

//go:embed options.yaml
var shared string

// described maps each info.yaml text to a function that returns its Info.
var described sync.Map

// Describe parses the text of a system's info.yaml, once. Options without a type are taken from
// options.yaml.
func Describe(text string) Info {
	read, _ := described.LoadOrStore(text, sync.OnceValue(func() (i Info) {
		var all []Option
		if err := errors.Join(yaml.UnmarshalWithOptions([]byte(text), &i, yaml.Strict()),
			yaml.UnmarshalWithOptions([]byte(shared), &all, yaml.Strict())); err != nil {
			panic(err) // a test parses all of them
		}
		for k, o := range i.Options {
			if o.Type == "" {
				i.Options[k] = all[slices.IndexFunc(all, func(s Option) bool { return s.Name == o.Name })]
			}
		}
		return i
	}))
	return read.(func() Info)()
}

// Fill returns o with the defaults of i filled in, or an error if an option is invalid.
func (i Info) Fill(o Options) (Options, error) {
	full := Options{}
	for _, opt := range i.Options {
		v, given := o[opt.Name]
		switch {
		case !given && opt.Required:
			return nil, fmt.Errorf("%s: option %q is required: %s", i.Name, opt.Name, opt.Help)
		case !given:
			v = opt.Default
		}
		if want := wants(opt, v); want != "" {
			return nil, fmt.Errorf("%s: option %q is %s, not %q", i.Name, opt.Name, want, v)
		}
		full[opt.Name] = v
	}
	for name := range o {
		if _, known := full[name]; !known {
			return nil, fmt.Errorf("%s: unknown option %q", i.Name, name)
		}
	}
	return full, nil
}

// wants returns a description of the valid values of an option if v is invalid, and "" if it is
// valid.
func wants(o Option, v string) string {
	var n int64
	var err error
	show := func(n int64) string { return strconv.FormatInt(n, 10) }
	switch {
	case v == "":
		return ""
	case len(o.Enum) > 0:
		if slices.Contains(o.Enum, v) {
			return ""
		}
		return "one of " + strings.Join(o.Enum, ", ")
	case o.Type == "int" || o.Type == "size":
		n, err = strconv.ParseInt(v, 10, 64)
	case o.Type == "duration":
		show = func(n int64) string { return time.Duration(n).String() }
		var d time.Duration
		d, err = time.ParseDuration(v)
		n = int64(d)
	default:
		return ""
	}
	if err == nil && n >= o.Min && (o.Max == 0 || n <= o.Max) && (!o.Power || n&(n-1) == 0) {
		return ""
	}
	want := "at least " + show(o.Min)
	if o.Max > 0 {
		want = "from " + show(o.Min) + " to " + show(o.Max)
	}
	if o.Power {
		want = "a power of two, " + want
	}
	return want
}

// Attaching returns an option that is set but, according to its Help, only for attaching; "" if
// there is none.
func (i Info) Attaching(o Options) string {
	for _, opt := range i.Options {
		if strings.HasPrefix(opt.Help, "attach: ") && o[opt.Name] != opt.Default {
			return opt.Name
		}
	}
	return ""
}

// Has reports whether the system supports mode m.
func (i Info) Has(m Mode) bool { return slices.Contains(i.Modes, m) }

// Able reports whether nodes of the system have an ability, a word of Can.
func (i Info) Able(word string) bool { return slices.Contains(i.Can, word) }

// Bool returns the value of a "bool" option; false if absent.
func (o Options) Bool(name string) bool { return o[name] == "true" }

// Int returns the value of an "int" or "size" option that [Info.Fill] has validated; 0 if absent.
func (o Options) Int(name string) int64 {
	n, _ := strconv.ParseInt(o[name], 10, 64)
	return n
}

// Duration returns the value of a "duration" option that [Info.Fill] has validated; 0 if absent.
func (o Options) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(o[name])
	return d
}
