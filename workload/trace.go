package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Trace is a list of sizes, and of names where they are given.
type Trace struct {
	sizes []int64
	names []byte // one after the other; an empty one means the object's number
	ends  []int  // of each name; nil when no object has one
}

// ReadTrace reads one object per line: its size, and after a comma its name,
// which may have commas itself. Empty lines and those that begin with # are
// left out. size reads a size; file is for messages. The error names every line
// that cannot be used, up to ten of them.
func ReadTrace(r io.Reader, file string, size func(string) (int64, error)) (*Trace, error) {
	t := &Trace{}
	bad := &problems{}
	var lines []int
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	line, named := 0, false
	for in.Scan() {
		line++
		text := bytes.TrimSpace(in.Bytes())
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		first, name, _ := bytes.Cut(text, []byte(","))
		name = bytes.TrimSpace(name)
		n, err := size(string(bytes.TrimSpace(first)))
		if err == nil && n < 0 {
			err = errors.New("a size cannot be negative")
		}
		if err == nil && len(name) > 0 {
			err = checkName(string(name))
		}
		if err != nil {
			bad.add(fmt.Errorf("%s:%d: %w", file, line, err))
			continue
		}
		named = named || len(name) > 0
		t.sizes = append(t.sizes, n)
		t.names = append(t.names, name...)
		t.ends = append(t.ends, len(t.names))
		lines = append(lines, line)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, line+1, err)
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	if len(t.sizes) == 0 {
		return nil, fmt.Errorf("%s: no line has a size", file)
	}
	if !named {
		t.ends = nil
		return t, nil
	}
	return t, t.unique(file, lines)
}

// unique refuses names that occur twice.
func (t *Trace) unique(file string, lines []int) error {
	order := make([]int32, len(t.sizes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(strings.Compare(t.Name(int(a)), t.Name(int(b))), cmp.Compare(a, b))
	})
	bad := &problems{}
	for k := 1; k < len(order); k++ {
		if a, b := int(order[k-1]), int(order[k]); t.Name(a) == t.Name(b) {
			bad.add(fmt.Errorf("%s:%d: the name %q is the one of line %d, too", file, lines[b], t.Name(b), lines[a]))
		}
	}
	return bad.err()
}

// Len implements Sizes.
func (t *Trace) Len() int { return len(t.sizes) }

// Size implements Sizes.
func (t *Trace) Size(i int) int64 { return t.sizes[i] }

// String implements Sizes. The sizes themselves are part of a set's fingerprint
// because a trace has names.
func (t *Trace) String() string { return fmt.Sprintf("trace of %d objects", len(t.sizes)) }

// Name implements Names.
func (t *Trace) Name(i int) string {
	if t.ends != nil {
		from := 0
		if i > 0 {
			from = t.ends[i-1]
		}
		if t.ends[i] > from {
			return string(t.names[from:t.ends[i]])
		}
	}
	return number(i)
}

// number is the name of the i-th object where nothing else names it.
func number(i int) string { return fmt.Sprintf("%08d.bin", i) }

// checkName refuses names that could leave a directory or that not every system
// can take.
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

// problems collects what is wrong with a data set: all problems are counted, the
// first ten reported.
type problems struct {
	errs []error
	more int
}

func (p *problems) add(err error) {
	if len(p.errs) < 10 {
		p.errs = append(p.errs, err)
	} else {
		p.more++
	}
}

func (p *problems) err() error {
	err := errors.Join(p.errs...)
	if p.more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, p.more)
	}
	return err
}
