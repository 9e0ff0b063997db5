package tahoe

import (
	"encoding/base32"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
)

// capability is the information in a cap itself.
type capability struct {
	kind   string // "CHK", "LIT", "SSK", "MDMF-RO", "DIR2", …
	size   int64  // bytes; -1: only the servers know
	needed int    // shares; 0: not in the cap
}

func (c capability) directory() bool { return strings.HasPrefix(c.kind, "DIR2") }

// literal reports whether the cap contains the object itself, whose bytes never leave the client.
func (c capability) literal() bool { return c.kind == "LIT" }

// mutable reports whether content can be written to the cap.
func (c capability) mutable() bool { return c.kind == "SSK" || c.kind == "MDMF" }

var (
	chkCap     = regexp.MustCompile(`^CHK:[a-z2-7]{26}:[a-z2-7]{52}:(\d+):(\d+):(\d+)$`)
	litCap     = regexp.MustCompile(`^LIT:([a-z2-7]*)$`)
	mutableCap = regexp.MustCompile(`^((?:SSK|MDMF|DIR2|DIR2-MDMF)(?:-RO)?):[a-z2-7]{26}:[a-z2-7]{52}(?::\d+)*$`)
)

// parseCap parses a cap of a file or of a mutable directory. Anything else returns ErrBadRef.
func parseCap(ref system.Ref) (capability, error) {
	bad := fmt.Errorf("tahoe: %q is not a cap of a file or directory: %w", ref, system.ErrBadRef)
	rest, ok := strings.CutPrefix(string(ref), "URI:")
	if !ok {
		return capability{}, bad
	}
	if m := chkCap.FindStringSubmatch(rest); m != nil {
		k, err := strconv.Atoi(m[1])
		size, err2 := strconv.ParseInt(m[3], 10, 64)
		if err != nil || err2 != nil {
			return capability{}, bad
		}
		return capability{"CHK", size, k}, nil
	}
	if m := litCap.FindStringSubmatch(rest); m != nil {
		b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(m[1]))
		if err != nil || slices.Contains([]int{1, 3, 6}, len(m[1])%8) { // impossible lengths of encoded bytes
			return capability{}, bad
		}
		return capability{"LIT", int64(len(b)), 0}, nil
	}
	if m := mutableCap.FindStringSubmatch(rest); m != nil {
		return capability{m[1], -1, 0}, nil
	}
	return capability{}, bad
}
