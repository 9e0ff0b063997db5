package workload

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"
)

// Trace is a list of sizes, optionally with names.
type Trace struct {
	sizes []int64
	names []string
}

// ReadTrace reads one object per line: its size and optionally a comma and its name, which may
// contain commas. Empty lines and lines that begin with # are ignored. size parses a size; file is
// the name in error messages.
func ReadTrace(r io.Reader, file string, size func(string) (int64, error)) (*Trace, error) {
	t := &Trace{}
	lines := map[string]int{} // line on which each name appears
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	line := 0
	for in.Scan() {
		line++
		text := strings.TrimSpace(in.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		first, name, _ := strings.Cut(text, ",")
		name = strings.TrimSpace(name)
		n, err := size(strings.TrimSpace(first))
		if err == nil && n < 0 {
			err = errors.New("a size cannot be negative")
		}
		if err == nil && name != "" {
			err = checkName(name)
		}
		name = cmp.Or(name, number(len(t.sizes)))
		if other := lines[name]; err == nil && other > 0 {
			err = fmt.Errorf("the name %q is the one of line %d, too", name, other)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		lines[name] = line
		t.sizes, t.names = append(t.sizes, n), append(t.names, name)
	}
	switch err := in.Err(); {
	case err != nil:
		return nil, fmt.Errorf("%s:%d: %w", file, line+1, err)
	case len(t.sizes) == 0:
		return nil, fmt.Errorf("%s: no line has a size", file)
	}
	return t, nil
}

// Len implements Sizes.
func (t *Trace) Len() int { return len(t.sizes) }

// Size implements Sizes.
func (t *Trace) Size(i int) int64 { return t.sizes[i] }

// String implements Sizes. It omits the sizes: they are part of the set's fingerprint, because a
// trace has names.
func (t *Trace) String() string { return fmt.Sprintf("trace of %d objects", len(t.sizes)) }

// Name returns the name of the i-th object.
func (t *Trace) Name(i int) string { return t.names[i] }

// number returns the name of the i-th object if it has no other name.
func number(i int) string { return fmt.Sprintf("%08d.bin", i) }

// checkName returns an error for names that could leave a directory or that some systems do not
// accept.
func checkName(name string) error {
	switch {
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q is not valid UTF-8", name)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("the name %q has a zero byte", name)
	case path.Clean("/"+name) != "/"+name:
		return fmt.Errorf("the name %q is not a plain path: it ends in a slash, or a part is empty or dots", name)
	}
	return nil
}
