// Package sia is what the two Sia renters, siad and renterd, have in common.
package sia

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// Space is the part of a renter's paths in which objects are read and stored.
type Space struct {
	System string // its name begins every error
	Prefix string // all refs begin so; empty: all that the renter has
	// Mark begins, after Prefix, the names of what this run stores ([Mark]); empty: the
	// renter has nothing that is someone else's, or nothing is stored.
	Mark string
}

// Mark is of 50 bits, random or of a run's id, which is random: no one else's
// objects begin with it, so that a put replaces nothing, and what a failed put
// leaves behind is ours to remove, without asking the renter before each put, in
// the time that is measured. All sessions of a run have the same: a later one
// finds by name what an earlier one has stored. Without a run each mark is new.
func Mark(run string) string {
	if run == "" {
		return rand.Text()[:10] + "-"
	}
	sum := sha256.Sum256([]byte("plimsoll mark of run " + run))
	return base32.StdEncoding.EncodeToString(sum[:])[:10] + "-"
}

// Ref is that of an object which this run stores under a name.
func (s Space) Ref(name string) system.Ref {
	return system.Ref(s.Prefix + s.Mark + disk.PathName(name))
}

// Name is the name of an object; those that this run has not stored have their
// run's mark in it.
func (s Space) Name(ref system.Ref) string {
	return disk.NameOfPath(strings.TrimPrefix(strings.TrimPrefix(string(ref), s.Prefix), s.Mark))
}

// Has reports whether a path lies in the space.
func (s Space) Has(path string) bool { return strings.HasPrefix(path, s.Prefix) }

// Ours reports whether a path is one that this run may have stored; without a
// mark, all of the space is.
func (s Space) Ours(path string) bool { return strings.HasPrefix(path, s.Prefix+s.Mark) }

// Path is ref when it can be a path of the space. Parts that a server or a
// client would resolve, and so mean another path by it, are ErrBadRef; a path
// elsewhere names nothing of ours: ErrNotFound.
func (s Space) Path(ref system.Ref) (string, error) {
	for part := range strings.SplitSeq(string(ref), "/") {
		if part == "" || part == "." || part == ".." {
			return "", fmt.Errorf("%s: %q: %w", s.System, ref, system.ErrBadRef)
		}
	}
	if !s.Has(string(ref)) {
		return "", fmt.Errorf("%s: %q does not begin with %q: %w", s.System, ref, s.Prefix, system.ErrNotFound)
	}
	return string(ref), nil
}
