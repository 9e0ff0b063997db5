package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// frozen is how long calls wait for a node that does not answer.
const frozen = 300 * time.Millisecond

// health checks that a node that accepts connections without answering is not healthy.
func (k *objects) health() {
	h, ok := k.n.(system.Healther)
	if !ok {
		k.Skip("the system has no health probe")
	}
	k.must("health of a healthy node", h.Health(k.ctx()))
	if len(k.n.Processes()) == 0 {
		return
	}
	defer k.freeze(k.n)()
	k.fails("health of a stopped node", h.Health(k.limited(frozen)))
}

// hang calls nodes that do not answer: calls must end at the context's deadline, and the nodes must
// serve again once they continue.
func (k *objects) hang() {
	if len(processes(k.c.Nodes()...)) == 0 {
		k.Skip("no processes that could be stopped")
	}
	o := k.put("hang", 5000)
	ways := ask(k.n)
	if !k.Truths.PutPassesServer {
		ways["put"] = func(ctx context.Context, _ system.Ref) error {
			return errorOf(k.n.Put(ctx, "hang-put", mib, Content("hang-put", mib)))
		}
	}
	thaw := k.freeze(k.c.Nodes()...)
	var all sync.WaitGroup
	for how, do := range ways {
		all.Go(func() {
			k.failsSoon(how+" of a system that does not answer", func() error {
				return do(k.limited(frozen), o.ref)
			}, context.DeadlineExceeded)
		})
	}
	all.Wait()
	thaw()
	await(soon, 100*time.Millisecond, func() bool { return k.n.Get(k.limited(soon), o.ref, io.Discard) == nil })
	k.want(o)
}

func (k *objects) stop() {
	if k.Attach != nil {
		k.Skip("nothing of ours to stop")
	}
	ref := k.put("stop", 1000).ref
	k.stopTwice(k.c)
	k.wantGone(k.n, ref)
}

// wantGone checks that a node without its server reports that soon.
func (k kit) wantGone(n system.Getter, ref system.Ref) {
	if h, ok := n.(system.Healther); ok {
		k.failsSoon("health without a server", func() error { return h.Health(k.ctx()) })
	}
	for how, get := range ask(n) {
		k.failsSoon(how+" without a server", func() error {
			err := get(k.ctx(), ref)
			if errors.Is(err, system.ErrNotFound) {
				k.Errorf("%s without a server: %v", how, err)
			}
			return err
		})
	}
}

// midway is larger than all buffers on the way.
const midway = 32 * mib

func (s Suite) killedInPut(t *testing.T) {
	if s.Truths.PutPassesServer {
		t.Skip("Put does not need the server")
	}
	k := s.start(t)
	k.failsSoon("a put during which the system was killed", func() error {
		killing := &hook{do: func() { k.kill(k.c.Nodes()...) }}
		return errorOf(k.n.Put(k.ctx(), "midway", midway, io.MultiReader(Content("midway", midway/2), killing,
			Content("midway-2", midway/2))))
	})
}

func (s Suite) killedInGet(t *testing.T) {
	k := s.start(t)
	ref := k.seeded("midway", midway)
	killed := false
	killing := sync.OnceFunc(func() {
		k.kill(k.c.Nodes()...)
		killed = true
	})
	k.failsSoon("a get during which the system was killed", func() error {
		return k.n.Get(k.ctx(), ref, &hook{do: killing})
	})
	if !killed {
		t.Error("no byte came before the system was killed")
	}
	k.wantGone(k.n, ref)
}

// revive kills all processes of a deployment at once, like a kill -9 of the session, and starts it
// again on its directory, twice: all objects must exist under the same refs, and more can be stored
// and removed.
func (s Suite) revive(t *testing.T) {
	if s.System.Info().Kept == "" {
		t.Skip("a deployment cannot be brought up again")
	}
	d := s.deployment(t)
	_, err := system.RestartDeployment(Context(t), s.System, d)
	kit{t}.fails("revive an empty directory", err)
	c, err := system.Begin(Context(t), s.System, system.Start, d)
	kit{t}.must("start", err)
	k := &objects{kit{t}, s, c, c.Nodes()[0].(system.Store), d.Client}
	var all []object
	for _, size := range []int64{1, 56, 3000, 2*mib + 1} {
		all = append(all, k.put(fmt.Sprint("run/revive-", size), size))
	}
	for round := range 2 {
		k.kill(k.c.Nodes()...)
		if err := k.c.Stop(k.ctx()); err != nil {
			t.Logf("stop of what was killed: %v", err) // the error is not judged here
		}
		k.c, err = system.RestartDeployment(k.ctx(), s.System, d)
		k.must("revive", err)
		k.n = k.c.Nodes()[0].(system.Store)
		k.want(all...)
		listed := k.listing(k.n)
		for _, o := range all {
			if listed != nil && (listed[o.ref].Size != int64(len(o.data)) || len(listed) != len(all)) {
				t.Errorf("%s of %d bytes is listed as %+v, one of %d", o.ref, len(o.data), listed[o.ref], len(listed))
			}
		}
		all = append(all, k.put(fmt.Sprint("run/more-", round), 5000+int64(round)))
	}
	if del, ok := k.n.(system.Deleter); ok {
		for _, o := range all {
			k.must("delete what an earlier session put", del.Delete(k.ctx(), o.ref))
			k.fails("get after delete", k.n.Get(k.ctx(), o.ref, io.Discard), system.ErrNotFound)
		}
	}
	k.must("stop", k.c.Stop(k.ctx()))
}

// wantPortInUse checks that a start fails if the port of the last node is taken, that the error
// names the host, and that no node is left running on the other hosts.
func (k kit) wantPortInUse(s system.System, d system.Deployment) {
	if !slices.ContainsFunc(s.Info().Options, func(o system.Option) bool { return o.Name == "port" }) {
		k.Skip("the system has no option port")
	}
	last := d.Hosts[len(d.Hosts)-1]
	port := k.takePort(last, d.Hosts[:len(d.Hosts)-1])
	taken := system.JoinPort(last, port)
	d.Options["port"] = strconv.Itoa(port)
	_, err := begin(k.ctx(), k.T, s, system.Start, d)
	if err == nil {
		k.Fatalf("started, though %s was taken", taken)
	}
	for _, want := range []string{s.Info().Name + ": ", "port in use", taken, last.Name()} {
		if !strings.Contains(err.Error(), want) {
			k.Errorf("start on a port in use: %v; want %q in it", err, want)
		}
	}
	if first := d.Hosts[0]; first != last { // its node had started: it must have released the port
		k.must("a node is left behind by a start that failed", errorOf(first.Port(k.ctx(), port)))
	}
}

// takePort occupies a port of a host that is free on the others: plain hosts share the machine's
// loopback, where nodes of other tests have ports too.
func (k kit) takePort(h testbed.Host, others []testbed.Host) int {
	for range 20 {
		at, stop, err := h.Respond(k.ctx())
		k.must("listen", err)
		port := int(at.Port())
		taken := func(o testbed.Host) bool { return errorOf(o.Port(k.ctx(), port)) != nil }
		if !slices.ContainsFunc(others, taken) {
			k.Cleanup(stop)
			return port
		}
		stop()
	}
	k.Fatalf("no port is free on all the other hosts")
	return 0
}

// arrive is a pause of a source: data read before it has reached the server by then, and is not
// lost in buffers on the way.
const arrive = 100 * time.Millisecond

// torn is an object that was partly stored or overwritten.
type torn struct {
	what, name  string
	ref         system.Ref // empty: unknown
	before, new []byte     // before nil: there was no object
	by          put        // stores new
	again       bool       // whether to repeat the operation afterwards
}

// torn interrupts puts and updates in the middle. Afterwards the ref must have either the previous
// content, or all of the new content, whose acceptance the client did not learn: a partial object
// is mistaken for a whole one. A server that writes in place, under the object's own name, leaves a
// partial object; its system declares that in Identity (system.PutsTear), which runs record. On
// such a server, the object may be the beginning of the new content with the size that the server
// reports, or the previous content overwritten by such a beginning, or missing. In any case other
// objects are unchanged, and repeating the put succeeds.
func (k *objects) torn() {
	from := time.Now()
	whole := k.put("torn", tornSize)
	took := time.Since(from)
	var all []torn
	known := map[system.Ref]bool{}
	// The last way is for systems that read the whole source before they send.
	for _, way := range []string{"broken", "cancelled", "cancelled-late"} {
		for _, o := range k.tearable(way) {
			known[o.ref] = true
			before := k.listing(k.n)
			k.tear(way, took, o)
			k.nothingNew(o, before, known)
			if o.ref != "" {
				all = append(all, o)
			}
		}
	}
	// Check at once, and again when the server has noticed that the client is gone.
	for _, later := range []time.Duration{0, 5 * arrive} {
		time.Sleep(later)
		for _, o := range all {
			var limit time.Duration
			if k.inPlace() { // it may still write, between get and list
				limit = soon
			}
			var err error
			if !await(limit, arrive, func() bool {
				err = k.tornContent(o)
				return err == nil
			}) {
				k.Errorf("%s: %v", o.what, err)
			}
		}
	}
	k.want(whole)
	for _, o := range all {
		var there bytes.Buffer
		_ = k.n.Get(k.ctx(), o.ref, &there)
		if o.again && (o.before != nil || !bytes.Equal(there.Bytes(), o.new)) { // some systems refuse to replace an object
			k.want(k.store(o.by, o.name, Bytes(o.what+" again", mib)))
		}
	}
}

// nothingNew checks that after an interrupted put the list has no new object except the whole one;
// or a partial one if [Truths.CutOffStays].
func (k *objects) nothingNew(o torn, before map[system.Ref]system.Object, known map[system.Ref]bool) {
	_, named := k.n.(system.Namer)
	for ref, has := range k.listing(k.n) {
		if named && !strings.Contains(string(ref), "torn-") { // the remains of an earlier case may still arrive
			continue
		}
		if has.Size < 0 { // a list without sizes: all may have arrived before the interruption
			var got bytes.Buffer
			if err := k.n.Get(k.ctx(), ref, &got); err == nil && bytes.Equal(got.Bytes(), o.new) {
				continue
			}
		}
		part := k.Truths.CutOffStays && has.Size < int64(len(o.new))
		if _, there := before[ref]; !there && !known[ref] && !part && has.Size != int64(len(o.new)) {
			k.Errorf("%s: %s of %d bytes is listed after it", o.what, ref, has.Size)
		}
	}
}

// tear stores a new object, which takes about took, and interrupts that in the middle: its source
// breaks, or the call is cancelled, either when half of the source has been read or after a time,
// which may be too late.
func (k *objects) tear(way string, took time.Duration, o torn) {
	ctx, cancel := context.WithCancel(k.ctx())
	defer cancel()
	cancelled, late := way == "cancelled", way == "cancelled-late"
	half := len(o.new) / 2
	rest := iotest.ErrReader(errReader)
	if cancelled {
		rest = bytes.NewReader(o.new[half:])
	}
	source := io.MultiReader(bytes.NewReader(o.new[:half]), &hook{do: func() {
		time.Sleep(arrive)
		if cancelled {
			cancel()
		}
	}}, rest)
	if late {
		source = bytes.NewReader(o.new)
		defer time.AfterFunc(took*3/4, cancel).Stop()
	}
	defer k.soon(o.what)()
	if _, err := o.by(ctx, o.name, int64(len(o.new)), source); err == nil && !late {
		k.Errorf("%s: no error", o.what)
	}
}

const tornSize = 8 * mib

// tearable returns the objects to be torn: one with an unused name, one with the name of an
// existing object, which a system may refuse, and an update.
func (k *objects) tearable(way string) []torn {
	fresh, old, mutable := "torn-new-"+way, "torn-old-"+way, "torn-update-"+way
	all := []torn{
		{what: "a new object, put " + way, name: fresh, new: Bytes(fresh, tornSize), by: k.n.Put, again: true},
		{what: "an object, replacement " + way, name: old, new: Bytes(old+" new", tornSize), by: k.n.Put},
	}
	// If the ref follows from the name, it must not be found.
	if namer, ok := k.n.(system.Namer); ok {
		all[0].ref = namer.Named(fresh)
	} else if d, ok := k.n.(system.Deleter); ok && !k.Truths.ContentAddressed {
		all[0].ref = k.put(fresh, 1000).ref
		k.must("delete", d.Delete(k.ctx(), all[0].ref))
	}
	replaced := k.put(old, 3*mib)
	all[1].ref, all[1].before = replaced.ref, replaced.data
	if u, ok := k.n.(system.Updater); ok {
		o := k.store(k.putMutable, mutable, Bytes(mutable, mib))
		update := func(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
			return o.ref, u.Update(ctx, o.ref, size, r)
		}
		all = append(all, torn{what: "an object, update " + way, name: mutable, ref: o.ref, before: o.data,
			new: Bytes(mutable+" new", tornSize/4), by: update, again: true})
	}
	return all
}

// inPlace reports whether the server writes in place, under the object's own name.
func (k *objects) inPlace() bool { return k.c.Identity()["puts"] == system.PutsTear }

// tornContent returns an error if the content of an interrupted object is not permitted.
func (k *objects) tornContent(o torn) error {
	inPlace := k.inPlace()
	var got bytes.Buffer
	err := k.n.Get(k.ctx(), o.ref, &got)
	there := got.Bytes()
	begun := 0 // bytes of the new content; some servers do not truncate the file first
	for begun < min(len(there), len(o.new)) && there[begun] == o.new[begun] {
		begun++
	}
	switch {
	case errors.Is(err, system.ErrNotFound) && (o.before == nil || inPlace):
		return nil
	case err != nil:
		return err
	case o.before != nil && bytes.Equal(there, o.before), bytes.Equal(there, o.new):
		return nil
	case inPlace && (begun == len(there) || bytes.Equal(there[begun:], o.before[min(begun, len(o.before)):])):
		if of := k.listing(k.n); of != nil && of[o.ref].Size != int64(len(there)) {
			return fmt.Errorf("%d bytes are there, and %d are listed", len(there), of[o.ref].Size)
		}
		return nil
	}
	return fmt.Errorf("%d bytes are there, which are neither the %d before nor the %d that were sent", len(there),
		len(o.before), len(o.new))
}
