package retrieve

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ipld/go-car/v2"

	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/internal/commp"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/system"
)

// wrongBytes returns an error for wrong content that a server sent before anything was measured.
func wrongBytes(format string, args ...any) error {
	return ui.WithHint(fmt.Errorf("wrong bytes: "+format, args...), "the server, or the list of its objects, is wrong: "+
		"compare with a copy that you trust before you measure this server")
}

// Notes of trials whose answers are compared with a copy from the same server.
const (
	noteCommP      = "content: verified against a full copy whose piece commitment (CommP) was checked"
	noteBlocks     = "content: verified against a CAR whose blocks match their hashes (its header has none)"
	noteFullCopy   = "content: verified against a full copy, fetched before anything was measured"
	noteConsistent = "content: ranges verified for consistency only, with what the server sent before (no full copy)"
	noteBeginning  = "; ranges are drawn from the beginning of the large objects, so that no full copy is needed"
)

// verifiedBy returns notes on the copies from the same server with which answers were compared.
func verifiedBy(set []object, receive string) (notes []string) {
	for _, o := range set {
		if o.checks != "" && receive != "drop" {
			notes = append(notes, o.checks)
		}
	}
	slices.Sort(notes)
	return slices.Compact(notes)
}

// copyMost limits the bytes fetched of an object that the run did not store, if all cells fetch
// ranges.
const copyMost = 256 << 20

// refer fetches a reference copy of an object before anything is measured. If largest, the size
// of the largest range, is not 0, it fetches only the beginning of a large object, and ranges are
// then drawn from there. wantHash, if not empty, is the SHA-256 of the object's payload.
func (r *runner) refer(ctx context.Context, o *object, target system.HTTPTarget, wantHash string, largest int64) error {
	fail := func(err error) error { return fmt.Errorf("%s: reference copy of %s: %w", r.site.Use.Name, o.name, err) }
	part := int64(0)
	if most := max(r.copyMost, largest); largest > 0 && o.Undivided == "" && wantHash == "" && o.Size > most {
		part = min(most, o.Span())
	}
	r.site.Say(fmt.Sprintf("%s: fetching a reference copy of %s", r.site.Use.Name, o.name))
	begun := time.Now()
	r.references++
	o.Reference = filepath.Join(r.site.Dir, fmt.Sprintf("reference-%d", r.references))
	f, err := os.Create(o.Reference)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	into := io.Writer(f)
	piece, isPiece := commp.Parse(target.URL.Path)
	isPiece = isPiece && part == 0 && target.Encoded == ""
	var commitment commp.Hash
	if isPiece {
		into = io.MultiWriter(f, &commitment)
	}
	limits := r.site.Limits
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Deadline.Std(),
		fmt.Errorf("it takes longer than %s (limits.deadline)", words.Duration(limits.Deadline.Std())))
	defer cancel()
	load := httpload.Spec{CAFile: target.CAFile, Insecure: target.Insecure, Stall: limits.Stall.Std(),
		Objects: []httpload.Object{{URL: target.URL.String(), Size: o.Size, Header: target.Header}}}
	n, err := load.Copy(ctx, r.site.Client.Dial, part, into)
	if err != nil {
		return fail(err)
	}
	what := fmt.Sprintf("%s: %s, %d bytes", r.site.Use.Name, o.name, n)
	if part > 0 {
		what += fmt.Sprintf(" of %d", o.Size)
		err = f.Truncate(o.Size)
	} else {
		sum := sha256.New()
		_, err = io.Copy(sum, io.NewSectionReader(f, 0, min(cmp.Or(o.Within, n), n)))
		got := hex.EncodeToString(sum.Sum(nil))
		what += ", sha256 " + got
		err = errors.Join(err, o.cameWhole(n, got, wantHash, target.Encoded == ""))
	}
	if err != nil {
		return fail(err)
	}
	o.checks = noteCommP
	if isPiece && !commitment.Is(piece) {
		is, _ := commitment.Piece()
		err = wrongBytes("its piece commitment (CommP) is %s, or that of these bytes and zeros", is)
	} else if !isPiece {
		err = o.checkBlocks(f, n, largest)
	}
	if err != nil {
		return fail(err)
	}
	r.site.Event("phase", "reference copy", what+"; "+o.checks, time.Since(begun))
	return f.Close()
}

// cameWhole sets the size to that of a whole copy, and compares size and hash with the list's.
func (o *object) cameWhole(n int64, hash, wantHash string, plain bool) error {
	said := o.Size
	o.Size = n
	switch {
	case wantHash != "" && !strings.EqualFold(wantHash, hash):
		return wrongBytes("it has SHA-256 %s, its list says %s", hash, wantHash)
	case plain && said >= 0 && said != n:
		return fmt.Errorf("it is said to have %d bytes, %d came", said, n)
	}
	return nil
}

// checkBlocks checks the n bytes fetched of an object by their blocks, if they are a CAR, and
// sets how the reference was checked.
func (o *object) checkBlocks(f *os.File, n, largest int64) error {
	o.checks = noteFullCopy
	part := n < o.Size
	if part {
		o.checks, o.Within = noteConsistent, n
	}
	end, whole, err := carBlocks(f, n)
	switch {
	case part && end >= max(largest, n/2): // all ranges lie in checked blocks or in the header
		o.checks, o.Within = noteBlocks, end
	case !part && whole:
		o.checks = noteBlocks
	}
	if part {
		o.checks += noteBeginning
	}
	return err
}

// maxCARHeader limits the length of a CAR's header.
const maxCARHeader = 1 << 20

// carBlocks reads the first n bytes of f as a CAR of version 1 or 2, and checks each block
// against its CID. end is the end of the last checked block, or 0; whole means that nothing follows it.
func carBlocks(f *os.File, n int64) (end int64, whole bool, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, false, err
	}
	in := bufio.NewReaderSize(io.LimitReader(f, n), 1<<20)
	c, err := car.NewBlockReader(in, car.MaxAllowedHeaderSize(maxCARHeader), car.WithTrustedCAR(true))
	if err != nil {
		return 0, false, nil // it is not a CAR
	}
	for {
		b, err := c.Next()
		if err != nil {
			return end, end > 0 && errors.Is(err, io.EOF), nil
		}
		sum, err := b.Cid().Prefix().Sum(b.RawData())
		if err != nil { // unknown hash function
			return end, false, nil
		}
		if !sum.Equals(b.Cid()) {
			return end, false, wrongBytes("the block that has the CID %s has another hash", b.Cid())
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return end, false, err
		}
		end = at - int64(in.Buffered())
	}
}
