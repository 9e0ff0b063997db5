package siad

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

func TestMain(m *testing.M) {
	if kind := os.Getenv(fakeEnv); kind != "" {
		serveFake(kind, os.Args[1:])
	}
	systemtest.Main(m, System{})
}

func TestConformance(t *testing.T) {
	// on plain loopback, siad 1.5.9 would look for a router on the network of this machine
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: systemtest.Truths{Slow: true,
		Without: []string{"follow"}}})
}

const secret = "not a real password"

// fails checks that err is of a kind (any if nil) and contains all these words.
func fails(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	lacks := func(word string) bool { return !strings.Contains(err.Error(), word) }
	if err == nil || kind != nil && !errors.Is(err, kind) || slices.ContainsFunc(words, lacks) {
		t.Errorf("%s: error %v, want %v with %q", what, err, kind, words)
	}
}

// tryAttach attaches to a replay.
func tryAttach(t *testing.T, s *replay.Server, write bool) (system.Cluster, error) {
	t.Helper()
	t.Setenv("PLIMSOLL_TEST_SIAD", secret)
	opt := system.Options{"url": s.URL, "password": "PLIMSOLL_TEST_SIAD", "path": "", "data_pieces": "1",
		"parity_pieces": "2"}
	return systemtest.Attach(t, System{}, opt, write)
}

// greeted attaches to a replay of the exchanges at the beginning of each attach, followed by more.
func greeted(t *testing.T, write bool, more ...[]replay.Exchange) (system.Cluster, error) {
	t.Helper()
	rec := replay.Load(t, "testdata/attach.jsonl")
	first := replay.Chain(replay.Steps(rec, "download with neither destination nor httpresp"),
		only(t, rec, "report", "/consensus")) // the first is siad's answer to a download without destination
	return tryAttach(t, replay.Serve(t, replay.Chain(first, replay.Chain(more...)),
		replay.Let("/renter/download/mib1", checkPath)), write)
}

// client returns the API of the daemon at an address.
func client(t *testing.T, address string) *sia.API {
	t.Helper()
	base, err := url.Parse(address)
	must(t, err)
	a := connect(base, secret, systemtest.Hosts(t, 1)[0])
	t.Cleanup(a.Close)
	return a
}

// attached returns a node on a replay, without attaching to it.
func attached(t *testing.T, steps []replay.Exchange, opts ...replay.Option) *node {
	t.Helper()
	s := replay.Serve(t, steps, append(opts, replay.Login("", secret))...)
	return newNode(client(t, s.URL), system.Options{}, sia.Plan{Data: 1, Total: 3})
}

// only returns the first exchange of a step with a path.
func only(t *testing.T, rec []replay.Exchange, step, path string) []replay.Exchange {
	t.Helper()
	for _, e := range replay.Steps(rec, step) {
		if e.Path == path {
			return []replay.Exchange{e}
		}
	}
	t.Fatalf("the recording has no step %q of %s", step, path)
	return nil
}

// Steps of the recordings that several tests use.
const (
	wrong       = "wrong API password"
	uploadStep  = "uploadstream: body is the content (no source path)"
	rightAfter  = "file right after uploadstream returned: available, redundancy 1, not yet full"
	uploadedSum = "9032f8c01c13659f9689e604b249444509a45c4296e205dae70b3285644a8865"
	checkPath   = "/renter/download/plimsoll-password-check"
)

// content is the content of "streamed" in the recordings.
var content = replay.Made("siad", 1<<20)

// uploaded returns a node on a replay that accepts the upload of content under a name.
func uploaded(t *testing.T, name string, steps []replay.Exchange, opts ...replay.Option) *node {
	t.Helper()
	return attached(t, steps, append(opts, replay.Instead(uploadedSum, content),
		replay.Let("/renter/uploadstream/streamed", "/renter/uploadstream/"+name))...)
}

// stream puts content.
func stream(t *testing.T, n *node) (system.Ref, error) {
	return n.Put(t.Context(), "streamed", int64(len(content)), bytes.NewReader(content))
}

// TestWrongPasswordThatReadsAccept checks that a wrong password is detected although siad answers
// requests for version, wallet, files and contracts without one. Only a protected call reveals it.
func TestWrongPasswordThatReadsAccept(t *testing.T) {
	rec := replay.Load(t, "testdata/attach.jsonl")
	for _, path := range []string{"/daemon/version", "/wallet", "/renter/files", "/consensus"} {
		if e := only(t, rec, wrong, path)[0]; e.Answer.Status != 200 {
			t.Fatalf("%s was refused in the recording: the trap is gone", path)
		}
	}
	steps := replay.Chain(
		only(t, rec, wrong, "/renter/download/a"),
		replay.Optional(replay.Chain(only(t, rec, wrong, "/daemon/version"), only(t, rec, wrong, "/consensus"),
			only(t, rec, wrong, "/wallet"))),
	)
	s := replay.Serve(t, steps, replay.ByPath(), replay.Let("/renter/download/a", checkPath))
	_, err := tryAttach(t, s, false)
	fails(t, "attach", err, system.ErrAuth, "apipassword")
	if strings.Contains(fmt.Sprint(err), secret) {
		t.Error(err)
	}
}

func TestLockedWallet(t *testing.T) {
	rec := replay.Load(t, "testdata/attach.jsonl")
	_, err := greeted(t, true, only(t, rec, "locked wallet: wallet", "/wallet"))
	fails(t, "attach", err, system.ErrLocked, "/wallet/unlock")
	// With an unlocked wallet, attaching continues.
	c, err := greeted(t, true, only(t, rec, "report", "/wallet"), replay.Steps(rec, "uploadready"),
		only(t, rec, wrong, "/daemon/version"))
	must(t, err)
	if mark := c.Nodes()[0].(*node).Mark; len(mark) < 10 {
		t.Errorf("names begin with %q, which somebody else may use", mark)
	}
	if v := c.Identity()["version"]; v != "siad 1.5.9" {
		t.Errorf("version %q", v)
	}
	must(t, c.Stop(t.Context()))
	// Reading needs no wallet.
	c, err = greeted(t, false, only(t, rec, wrong, "/daemon/version"))
	must(t, err)
	n := c.Nodes()[0].(system.Store)
	if mark := n.(*node).Mark; mark != "" {
		t.Errorf("a node for reading has mark %q", mark)
	}
	_, err = n.Put(t.Context(), "x", 1, strings.NewReader("x"))
	fails(t, "put", err, system.ErrReadOnly)
}

// Test204ThatStoredNothing checks uploads that siad accepts without storing anything.
func Test204ThatStoredNothing(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	n := uploaded(t, "streamed", replay.Chain(
		replay.Steps(rec, uploadStep, "file after the delete"), // 400: path does not exist
		replay.Steps(replay.Load(t, "testdata/attach.jsonl"), "locked wallet: wallet"),
	))
	_, err := stream(t, n)
	fails(t, "put", err, system.ErrLocked, "nothing was stored")
	if errors.Is(err, system.ErrNotFound) {
		t.Error(err)
	}
	fails(t, "delete of what was not stored", n.Delete(t.Context(), "streamed"), system.ErrReadOnly)
}

// TestAcceptedIsNotDurable checks that a put returns at redundancy 1. The redundancy stays at 0, or
// at 1, until the last piece has arrived, while the uploaded bytes increase. An object that was
// just put is deleted once all its pieces have arrived; a settled one is deleted without a call
// before.
func TestAcceptedIsNotDurable(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	states := replay.Poll(replay.Steps(rec, "poll file mib40 until uploadprogress 100 and redundancy 3"))
	if len(states) < 5 {
		t.Fatalf("only %d states", len(states))
	}
	remove := slices.Clone(replay.Steps(rec, "missing file: delete"))
	remove[0].Path = "/renter/delete/streamed"
	remove[0] = remove[0].JSON(http.StatusNoContent, nil)
	for _, settled := range []bool{false, true} {
		n := uploaded(t, "streamed", replay.Chain(replay.Steps(rec, uploadStep, rightAfter), states, remove),
			replay.Let("/renter/file/mib40", "/renter/file/streamed"))
		ref, err := stream(t, n)
		if err != nil || ref != "streamed" {
			t.Fatalf("%q, %v", ref, err)
		}
		if settled {
			must(t, n.Settle(systemtest.Context(t), ref))
		}
		must(t, n.Delete(t.Context(), ref))
	}
}

// TestNotRepairedInTime checks a file whose pieces are not repaired after a host died.
func TestNotRepairedInTime(t *testing.T) {
	n := attached(t, replay.Poll(replay.Steps(replay.Load(t, "testdata/killed.jsonl"), "poll file mib1"))[1:])
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	fails(t, "settle", n.Settle(ctx, "mib1"), context.DeadlineExceeded, "not repaired in", "redundancy 2 of 3")
}

// TestReadsComeFromHosts checks that reads come from hosts: the strict replay fails on a download
// that siad may answer from its own disk.
func TestReadsComeFromHosts(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	content := replay.Made("mib1", 1<<20)
	whole := replay.Steps(rec, "download mib1 from the hosts (disablelocalfetch=true)")
	part := replay.Steps(rec, "download by offset and length")
	cold := only(t, replay.Load(t, "testdata/killed.jsonl"), "poll file mib1", "/renter/file/mib1")
	n := attached(t, replay.Chain(cold, whole, cold, part, cold, cold),
		replay.Instead(whole[0].Answer.Body.SHA256, content), replay.Instead(part[0].Answer.Body.SHA256,
			content[100:200]))
	must(t, n.Cool(t.Context(), "mib1"))
	var got bytes.Buffer
	if err := n.Get(t.Context(), "mib1", &got); err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	got.Reset()
	if err := n.GetRange(t.Context(), "mib1", 100, 100, &got); err != nil || !bytes.Equal(got.Bytes(),
		content[100:200]) {
		t.Errorf("range: %d bytes, %v", got.Len(), err)
	}
	// Beyond the end, only existing bytes are requested.
	fails(t, "at the end", n.GetRange(t.Context(), "mib1", 1<<20, 5, &got), io.ErrUnexpectedEOF)
	if o, err := n.Stat(t.Context(), "mib1"); err != nil || o.Size != 1<<20 || o.Name != "mib1" {
		t.Errorf("stat: %+v, %v", o, err)
	}
}

// TestMissingIsSaidIn400And500 checks missing files, for which siad has no 404.
func TestMissingIsSaidIn400And500(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	get := replay.Steps(rec, "missing file: download")
	get[0].Query.Set("disablelocalfetch", "true")
	n := attached(t, replay.Chain(get, replay.Steps(rec, "missing file: file", "missing file: file",
		"missing file: delete")))
	n.Add("missing", 1)
	fails(t, "get", n.Get(t.Context(), "missing", io.Discard), system.ErrNotFound)
	_, err := n.Stat(t.Context(), "missing")
	fails(t, "stat", err, system.ErrNotFound)
	err = n.Settle(t.Context(), "missing")
	fails(t, "settle", err, system.ErrNotFound)
	if strings.Contains(fmt.Sprint(err), "not repaired") {
		t.Error(err)
	}
	fails(t, "delete", n.Delete(t.Context(), "missing"), system.ErrNotFound)
	for _, ref := range []system.Ref{"", "../x", "a//b", "/a", "a/../b"} {
		if err := n.Get(t.Context(), ref, io.Discard); !errors.Is(err, system.ErrBadRef) ||
			errors.Is(err, system.ErrNotFound) {
			t.Errorf("get %q: %v", ref, err)
		}
	}
}

func TestTooFewContracts(t *testing.T) {
	rec := replay.Load(t, "testdata/attach.jsonl")
	step := replay.Steps(rec, "uploadstream with no contracts, client deadline 15 s")
	n := attached(t, replay.Chain(step, asideOfNothing(t, "s", "=cut-off/S-1")), replay.Instead(step[0].Body.SHA256,
		[]byte("x")))
	n.session = "S-"
	_, err := n.Put(t.Context(), "s", 1, strings.NewReader("x"))
	fails(t, "put", err, system.ErrTooFew)
	// Attaching reports it before anything is sent.
	ready := replay.Steps(rec, "uploadready")
	none := ready[0].JSON(200, map[string]any{"ready": false, "contractsneeded": 3, "numactivecontracts": 0,
		"datapieces": 1, "paritypieces": 2})
	_, err = greeted(t, true, only(t, rec, "report", "/wallet"), []replay.Exchange{none})
	fails(t, "attach", err, system.ErrTooFew, "0 contracts")
}

// posted returns an exchange that posts a form to a path, with siad's answer for a missing file.
func posted(t *testing.T, path string, form url.Values) replay.Exchange {
	e := replay.Steps(replay.Load(t, "testdata/files.jsonl"), "missing file: delete")[0]
	e.Path, e.Body = path, replay.Body{Text: form.Encode()}
	e.Header = e.Header.Clone()
	e.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return e
}

// asideOfNothing returns the rename of a missing file, with siad's answer.
func asideOfNothing(t *testing.T, ref, to string) []replay.Exchange {
	return []replay.Exchange{posted(t, "/renter/rename/"+ref, url.Values{"newsiapath": {to}})}
}

// removeAside returns the deletion of everything that was moved aside.
func removeAside(t *testing.T) []replay.Exchange {
	e := posted(t, "/renter/dir/MARK-=cut-off", url.Values{"action": {"delete"}})
	return []replay.Exchange{e.JSON(http.StatusNoContent, nil)}
}

const movedTo = "MARK-=cut-off/S-1" // where a marked node moves the remains of a failed put

// marked returns a node with a run's mark, since others may use the renter too.
func marked(t *testing.T, steps []replay.Exchange, opts ...replay.Option) *node {
	t.Helper()
	n := uploaded(t, "MARK-streamed", steps, opts...)
	n.Mark, n.session = "MARK-", "S-"
	return n
}

// TestFailedPutIsMovedAside checks that the remains of a failed put are deleted only once no pieces
// of them can be in transit, and are not an object until then.
func TestFailedPutIsMovedAside(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	upload := replay.Steps(rec, uploadStep)
	upload[0].Answer = replay.Answer{End: replay.Refused}
	aside := asideOfNothing(t, "MARK-streamed", movedTo)
	aside[0] = aside[0].JSON(http.StatusNoContent, nil)
	n := marked(t, replay.Chain(upload, aside, replay.Steps(rec, "renter/files"), removeAside(t)),
		replay.Let(`"mib1"`, `"`+movedTo+`"`), replay.Let(`"one"`, `"MARK-one"`))
	_, err := stream(t, n)
	fails(t, "put", err, nil)
	all, err := system.All(t.Context(), n)
	if err != nil || len(all) != 1 || all[0].Ref != "MARK-one" {
		t.Errorf("%+v, %v", all, err)
	}
	for range 2 {
		must(t, n.Stop(t.Context()))
	}
}

// TestLeftByAKilledSession checks that what an earlier session of this run moved aside is in no
// reading, and that this session deletes it if it may write to the renter.
func TestLeftByAKilledSession(t *testing.T) {
	files := replay.Steps(replay.Load(t, "testdata/files.jsonl"), "renter/files")
	all, err := attached(t, files).readFiles(t.Context())
	must(t, err)
	for _, write := range []bool{true, false} {
		steps := files
		if write {
			steps = replay.Chain(files, removeAside(t))
		}
		n := marked(t, steps, replay.Let(`"mib1"`, `"MARK-=cut-off/EARLIER-1"`))
		n.Write = write
		readings, err := n.readFiles(t.Context())
		if err != nil || readings[0].Name != system.ReadFiles || readings[0].Value != all[0].Value-1 {
			t.Errorf("write %v: %v, %v; in all the renter has %v", write, readings, err, all[0])
		}
		must(t, n.Stop(t.Context()))
	}
}

// TestFailedPutRemovesOnlyItsOwn checks that a failed upload, whether it has begun or not, leaves
// no part of a file and removes no existing file. The strict replay fails on an unexpected rename,
// and on a missing one.
func TestFailedPutRemovesOnlyItsOwn(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	refused := only(t, replay.Load(t, "testdata/attach.jsonl"), wrong, "/renter/download/a")[0].Answer // 401
	for what, answer := range map[string]replay.Answer{"connection reset": {End: replay.Refused},
		"wrong password": refused} {
		upload := replay.Steps(rec, uploadStep)
		upload[0].Answer = answer
		// Nothing of others has this run's mark.
		remove := asideOfNothing(t, "MARK-streamed", movedTo)
		if answer.Status == 0 { // a renter that may notice the end of the put only later
			remove = replay.Poll(remove)
		}
		_, err := stream(t, marked(t, replay.Chain(upload, remove)))
		fails(t, what, err, nil)
		// What an earlier put has stored remains.
		n := uploaded(t, "streamed", upload)
		n.Add("streamed", 1<<20)
		_, err = stream(t, n)
		fails(t, what+", stored before", err, nil)
		if _, ours := n.Stored("streamed"); !ours {
			t.Errorf("%s: the earlier object is forgotten", what)
		}
	}
}

// A renter that hangs delays a put until its deadline, and only slightly beyond it.
func TestPutOfARenterThatHangs(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	n := newNode(client(t, server.URL), system.Options{}, sia.Plan{Data: 1, Total: 3})
	const deadline = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	from := time.Now()
	_, err := n.Put(ctx, "hangs", 1<<20, bytes.NewReader(make([]byte, 1<<20)))
	if took := time.Since(from); !errors.Is(err, context.DeadlineExceeded) || took > deadline+5*noticeTime {
		t.Errorf("with a deadline of %v it took %v: %v", deadline, took, err)
	}
}

func TestEmptyListsAreNull(t *testing.T) {
	rec := replay.Load(t, "testdata/attach.jsonl")
	empty := replay.Steps(rec, "files after")
	n := attached(t, replay.Chain(empty, empty))
	if all, err := system.All(t.Context(), n); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if h, err := n.Stats(t.Context()); err != nil || h.Objects != 0 || h.Absolute != 0 || h.Disk != -1 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestListAndStats(t *testing.T) {
	files := replay.Steps(replay.Load(t, "testdata/files.jsonl"), "renter/files")
	n := attached(t, replay.Chain(files, files))
	all, err := system.All(t.Context(), n)
	if err != nil || len(all) < 2 {
		t.Fatalf("%v, %v", all, err)
	}
	var want int64
	for _, o := range all {
		switch o.Name {
		case "one":
			want += 3 * 256 << 10 // one byte takes a sector of each host
		case "mib1":
			want += 3 << 20
		case "mib40":
			want += 120 << 20
		}
	}
	if h, err := n.Stats(t.Context()); err != nil || h.Absolute != want || h.Objects != int64(len(all)) {
		t.Errorf("%+v, want %d, %v", h, want, err)
	}
}

func TestOptions(t *testing.T) {
	t.Setenv("PLIMSOLL_SIAD", "")
	for want, opt := range map[string]system.Options{
		"need as many hosts": {"hosts": "3", "data_pieces": "2", "parity_pieces": "2"},
		"give both":          {"data_pieces": "2"},
		"multiple of 16 MiB": {"host_size": "16777217"},
		"is from 2 to 64":    {"hosts": "1"},
	} {
		if p := system.Check(t.Context(), System{}, opt); len(p) != 1 || !strings.Contains(p[0].What, want) {
			t.Errorf("%v: %v, want %q", opt, p, want)
		}
	}
	if p := system.Check(t.Context(), System{}, nil); len(p) != 1 || !strings.Contains(p[0].Hint, "PLIMSOLL_SIAD") {
		t.Errorf("%v", p)
	}
	for _, url := range []string{"127.0.0.1:9980", "ftp://x", "http://", "http://u:p@x"} {
		if p := system.Check(t.Context(), System{}, system.Options{"url": url}); len(p) != 1 ||
			!strings.Contains(p[0].What, "not the URL") {
			t.Errorf("%s: %v", url, p)
		}
	}
}
