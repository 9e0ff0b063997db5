package listed

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
)

// Entry is a line of a list of existing objects: "WHAT [SIZE [SHA256]]", with "-" for unknown
// values and '#' comments.
type Entry struct {
	What   string
	Size   int64  // -1: unknown
	SHA256 string // lower-case hex; empty: unknown
}

// Object returns the entry as a stored object.
func (e Entry) Object() system.Object {
	return system.Object{Name: e.What, Ref: system.Ref(e.What), Size: e.Size, SHA256: e.SHA256}
}

// Read parses the file at path; what names the first column in errors.
func Read(path, what string) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Parse(f, path, what)
}

// Parse is Read from r; name is the file name for errors. All invalid lines are reported.
func Parse(r io.Reader, name, what string) ([]Entry, error) {
	var out []Entry
	var errs []error
	seen := map[string]int{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(" "+lines.Text(), " #") // a URL may contain a '#'
		e, err := parseLine(line, what)
		if first := seen[e.What]; err == nil && e.What != "" && first > 0 {
			err = fmt.Errorf("the same %s as on line %d", what, first)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, n, err))
		} else if e.What != "" {
			out, seen[e.What] = append(out, e), n
		}
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	if len(errs) == 0 && len(out) == 0 {
		errs = append(errs, fmt.Errorf("%s: no %s in it; write one per line: %s [SIZE [SHA256]]", name, what,
			strings.ToUpper(what)))
	}
	return out, errors.Join(errs...)
}

func parseLine(line, what string) (Entry, error) {
	e := Entry{Size: -1}
	f := strings.Fields(line)
	if len(f) == 0 {
		return e, nil
	}
	if e.What = f[0]; len(f) > 3 {
		return e, fmt.Errorf("%d columns; want %s [SIZE [SHA256]]", len(f), strings.ToUpper(what))
	}
	if len(f) > 1 && f[1] != "-" {
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n < 0 {
			return e, fmt.Errorf("size %q is not a number of bytes (or - when it is not known)", f[1])
		}
		e.Size = n
	}
	if len(f) > 2 && f[2] != "-" {
		e.SHA256 = strings.ToLower(f[2])
		if b, err := hex.DecodeString(e.SHA256); err != nil || len(b) != 32 {
			return e, fmt.Errorf("sha256 %q is not 64 hexadecimal digits (or - when it is not known)", f[2])
		}
	}
	return e, nil
}
