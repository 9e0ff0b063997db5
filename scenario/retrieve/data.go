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

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/internal/commp"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// object is an object to fetch. Its URL and header are set for each trial.
type object struct {
	httpload.Object
	name   string
	ref    system.Ref
	checks string // note on how the reference was checked
}

// fits returns why ranges of a size cannot be fetched from the object.
func (o object) fits(size experiment.Bytes) error {
	span := o.Span()
	switch {
	case size == 0:
		return nil
	case o.Undivided != "":
		return scenario.Unfit(o.name, system.Problem{What: "ranges cannot be fetched: " + o.Undivided + "; use range: whole",
			Hint: "set retrieve.range to whole, or serve the object from a server that answers ranges"})
	case span < 0:
		return scenario.Unfit(o.name, system.Problem{What: "its size is unknown, so ranges cannot be drawn from it",
			Hint: "set retrieve.range to whole"})
	case span < int64(size):
		return scenario.Unfit(o.name, system.Problem{What: fmt.Sprintf("it has %d bytes, fewer than the range of %s", span,
			size), Hint: "set retrieve.range to less, or to whole"})
	}
	return nil
}

// dataSet stores the objects of a data set in the system or, if the system has its own objects,
// finds them.
func (r *runner) dataSet(ctx context.Context, data experiment.Data, cells []experiment.Cell) ([]object, error) {
	if log := cells[0].Retrieve.Replays(); log != nil {
		return r.replayed(ctx, log, data.Objects > 0)
	}
	if data.Size > 0 {
		return r.stored(ctx, slices.Repeat([]int64{int64(data.Size)}, data.Objects))
	}
	verify, whole, largest := false, false, experiment.Bytes(0)
	for _, c := range cells {
		if c.Data.Key() == data.Key() {
			verify = verify || c.Retrieve.Receive != "drop"
			whole = whole || c.Retrieve.Range == 0
			largest = max(largest, c.Retrieve.Range)
		}
	}
	if whole {
		largest = 0
	}
	return r.ownObjects(ctx, verify, int64(largest))
}

// content returns the content of the i-th object of a size. The seed is mixed with the size, so
// that data sets do not share content.
func (r *runner) content(i int, size int64) *workload.Content {
	return &workload.Content{Seed: r.site.Seed ^ uint64(size), Index: uint64(i), Size: size}
}

// stored stores objects of the given sizes.
func (r *runner) stored(ctx context.Context, sizes []int64) ([]object, error) {
	store, ok := r.node.(system.Store)
	if !ok {
		return nil, fmt.Errorf("%s: objects cannot be stored in it, and the experiment asks for %d", r.site.Use.Name,
			len(sizes))
	}
	set := make([]object, 0, len(sizes))
	for i, size := range sizes {
		content := r.content(i, size)
		o := object{name: fmt.Sprintf("plimsoll-%d-%d-%06d.bin", r.site.Seed, size, i)}
		o.Size, o.Content = size, content
		var err error
		o.ref, err = system.Seed(ctx, store, o.name, size, content.Reader())
		r.Add(o.name, o.ref)
		if err != nil {
			return nil, fmt.Errorf("%s: store object %s (%s): %w", r.site.Use.Name, o.name, experiment.Bytes(size), err)
		}
		target, err := r.server.Target(o.ref)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", r.site.Use.Name, o.name, err)
		}
		if target.Encoded != "" {
			// The served bytes are not the object's, and their number is unknown before a fetch.
			o.Undivided, o.Content = "it is served as "+target.Encoded, nil
			if err := r.refer(ctx, &o, target, "", 0); err != nil {
				return nil, err
			}
		}
		set = append(set, o)
	}
	return set, nil
}

// replayed returns the objects for replaying a log: one object for each of its paths, with the
// size from the log, or a single one for an existing server, which gets the paths unchanged.
func (r *runner) replayed(ctx context.Context, log *experiment.Arrivals, store bool) ([]object, error) {
	found, sizes, err := scenario.ReadRequestLog(scenario.InBase(r.site.Base, log.Log))
	if err == nil && found.SHA256 != log.Found.SHA256 {
		err = fmt.Errorf("the log %s has changed since the plan was made", log.Log)
	}
	if err != nil {
		return nil, scenario.Unfit(r.site.Use.Name, system.Problem{What: err.Error(),
			Hint: "put the file back, or begin a new run with a copy that does not change"})
	}
	if store {
		set, err := r.stored(ctx, sizes)
		for _, o := range set {
			if o.Undivided != "" {
				return nil, fmt.Errorf("%s: a log cannot be replayed: %s, and the log says nothing of that size",
					r.site.Use.Name, o.Undivided)
			}
		}
		return set, err
	}
	objects, err := r.listed(ctx)
	if err != nil {
		return nil, err
	}
	return []object{{Object: httpload.Object{Size: -1}, name: "replay", ref: objects[0].Ref}}, nil
}

// listed returns the objects that existed before the run, at least one.
func (r *runner) listed(ctx context.Context) ([]system.Object, error) {
	var objects []system.Object
	var err error
	if r.site.Use.Attached() {
		objects, err = system.Found(ctx, r.node)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: list its objects: %w", r.site.Use.Name, err)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s: it has no objects of its own; give data.size in the experiment file, and allow: "+
			"[write] when it is attached", r.site.Use.Name)
	}
	return objects, nil
}

// ownObjects returns the objects that existed before the run. If verify is set (some cell
// compares the received bytes) or the size is unknown, it fetches a reference copy of each before
// anything is measured, see refer. largest is the size of the largest range; 0 means that some
// cell fetches whole objects.
func (r *runner) ownObjects(ctx context.Context, verify bool, largest int64) ([]object, error) {
	objects, err := r.listed(ctx)
	if err != nil {
		return nil, err
	}
	var set []object
	for _, listed := range objects {
		o := object{httpload.Object{Size: listed.Size, Within: listed.Payload, Moved: listed.Moved}, listed.Name,
			listed.Ref, ""}
		target, err := r.server.Target(o.ref)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", r.site.Use.Name, o.name, err)
		}
		switch {
		case target.Encoded != "":
			o.Undivided = "it is served as " + target.Encoded
		case listed.NoRange:
			o.Undivided = "the server answers ranges with the whole"
		}
		if verify || o.Size < 0 {
			if err := r.refer(ctx, &o, target, listed.SHA256, largest); err != nil {
				return nil, err
			}
		}
		set = append(set, o)
	}
	return set, nil
}

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
		return fmt.Errorf("expected %d bytes, received %d", said, n)
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
	from := io.NewSectionReader(f, 0, n)
	in := bufio.NewReaderSize(from, 1<<20)
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
		at, _ := from.Seek(0, io.SeekCurrent) // never fails
		end = at - int64(in.Buffered())
	}
}
