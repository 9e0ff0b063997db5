package siad

import (
	"bytes"
	"context"
	"errors"
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
	switch os.Getenv(fakeEnv) {
	case "":
	case "chain":
		serveFakeChain(os.Args[1:])
	default:
		serveFake(os.Args[1:])
	}
	systemtest.Main(m, System{})
}

func TestConformance(t *testing.T) {
	if os.Getenv("PLIMSOLL_SIAD") == "" {
		systemtest.Need(t, name, []system.Problem{{What: "PLIMSOLL_SIAD names no siad", Hint: System{}.Info().Install}})
	}
	// in plain loopback siad 1.5.9 would look for a router on this machine's own network
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: systemtest.Truths{Slow: true,
		Without: []string{"follow"}}})
}

const secret = "not a real password"

// tryAttach attaches to a replay.
func tryAttach(t *testing.T, s *replay.Server, write bool, more system.Options) (system.Cluster, error) {
	t.Helper()
	t.Setenv("PLIMSOLL_TEST_SIAD", secret)
	opt := system.Options{"url": s.URL, "password": "PLIMSOLL_TEST_SIAD", "path": "", "data_pieces": "1",
		"parity_pieces": "2"}
	for k, v := range more {
		opt[k] = v
	}
	return systemtest.Attach(t, System{}, opt, write)
}

// attached is a node on a replay; attaching is not part of it.
func attached(t *testing.T, steps []replay.Exchange, opts ...replay.Option) *node {
	t.Helper()
	s := replay.Serve(t, steps, append(opts, replay.Login("", secret))...)
	t.Setenv("PLIMSOLL_TEST_SIAD", secret)
	base, password, err := sia.Endpoint(name, system.Options{"url": s.URL, "password": "PLIMSOLL_TEST_SIAD"})
	must(t, err)
	a := connect(base, password, systemtest.Hosts(t, 1)[0])
	t.Cleanup(a.Close)
	return newNode(a, system.Options{}, sia.Plan{Data: 1, Total: 3})
}

// only keeps the exchanges about one path; of several, the i-th.
func only(t *testing.T, rec []replay.Exchange, step, path string, i int) []replay.Exchange {
	t.Helper()
	for _, e := range replay.Steps(rec, step) {
		if e.Path == path {
			if i == 0 {
				return []replay.Exchange{e}
			}
			i--
		}
	}
	t.Fatalf("the recording has no step %q of %s", step, path)
	return nil
}

// Steps of the recordings that several tests need.
const (
	wrong       = "wrong API password"
	uploadStep  = "uploadstream: body is the content (no source path)"
	rightAfter  = "file right after uploadstream returned: available, redundancy 1, not yet full"
	uploadedSum = "9032f8c01c13659f9689e604b249444509a45c4296e205dae70b3285644a8865"
	checkPath   = "/renter/download/plimsoll-password-check"
)

// passwordIsRight is what siad says to a download to nowhere.
func passwordIsRight(t *testing.T) []replay.Exchange {
	return replay.Steps(replay.Load(t, "testdata/attach.jsonl"), "download with neither destination nor httpresp")
}

// TestWrongPasswordThatReadsAccept: version, wallet, files and contracts are
// told to anyone; only a protected call shows that the password is wrong.
func TestWrongPasswordThatReadsAccept(t *testing.T) {
	rec := replay.Load(t, "testdata/attach.jsonl")
	for _, path := range []string{"/daemon/version", "/wallet", "/renter/files", "/consensus"} {
		if e := only(t, rec, wrong, path, 0)[0]; e.Answer.Status != 200 {
			t.Fatalf("%s was refused in the recording: the trap is gone", path)
		}
	}
	steps := replay.Chain(
		only(t, rec, wrong, "/renter/download/a", 0),
		replay.Optional(replay.Chain(only(t, rec, wrong, "/daemon/version", 0), only(t, rec, wrong, "/consensus", 0),
			only(t, rec, wrong, "/wallet", 0))),
	)
	s := replay.Serve(t, steps, replay.ByPath(), replay.Let("/renter/download/a", checkPath))
	_, err := tryAttach(t, s, false, nil)
	if !errors.Is(err, system.ErrAuth) || !strings.Contains(err.Error(), "apipassword") || strings.Contains(err.Error(),
		secret) {
		t.Errorf("got %v", err)
	}
}

func TestLockedWallet(t *testing.T) {
	rec := replay.Load(t, "testdata/attach.jsonl")
	begin := replay.Chain(passwordIsRight(t), only(t, rec, "report", "/consensus", 0),
		only(t, rec, "locked wallet: wallet", "/wallet", 0))
	rename := replay.Let("/renter/download/mib1", checkPath)
	s := replay.Serve(t, begin, rename)
	_, err := tryAttach(t, s, true, nil)
	if !errors.Is(err, system.ErrLocked) || !strings.Contains(err.Error(), "/wallet/unlock") {
		t.Errorf("got %v", err)
	}
	// With an unlocked one the rest follows.
	s = replay.Serve(t, replay.Chain(passwordIsRight(t), only(t, rec, "report", "/consensus", 0),
		only(t, rec, "report", "/wallet", 0), replay.Steps(rec, "uploadready"), only(t, rec, wrong, "/daemon/version",
			0)), rename)
	c, err := tryAttach(t, s, true, nil)
	must(t, err)
	if mark := c.Nodes()[0].(*node).Mark; len(mark) < 10 {
		t.Errorf("names begin with %q, which somebody else may use", mark)
	}
	if v := c.Identity()["version"]; v != "siad 1.5.9" {
		t.Errorf("version %q", v)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	// Reading needs no wallet.
	s = replay.Serve(t, replay.Chain(passwordIsRight(t), only(t, rec, "report", "/consensus", 0),
		only(t, rec, wrong, "/daemon/version", 0)), rename)
	c, err = tryAttach(t, s, false, nil)
	must(t, err)
	n := c.Nodes()[0].(system.Store)
	if mark := n.(*node).Mark; mark != "" {
		t.Errorf("a node for reading has mark %q", mark)
	}
	if _, err := n.Put(t.Context(), "x", 1, strings.NewReader("x")); !errors.Is(err, system.ErrReadOnly) {
		t.Errorf("put: %v", err)
	}
}

// Test204ThatStoredNothing: siad takes uploads that lead nowhere.
func Test204ThatStoredNothing(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	content := replay.Made("siad", 1<<20)
	steps := replay.Chain(
		replay.Steps(rec, uploadStep),
		replay.Steps(rec, "file after the delete"), // 400: path does not exist
		replay.Steps(replay.Load(t, "testdata/attach.jsonl"), "locked wallet: wallet"),
	)
	n := attached(t, steps, replay.Instead(uploadedSum, content))
	_, err := n.Put(t.Context(), "streamed", 1<<20, bytes.NewReader(content))
	if err == nil || !strings.Contains(err.Error(), "nothing was stored") || !errors.Is(err, system.ErrLocked) ||
		errors.Is(err, system.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := n.Delete(t.Context(), "streamed"); !errors.Is(err, system.ErrReadOnly) {
		t.Errorf("what was not stored counts as ours: %v", err)
	}
}

// TestAcceptedIsNotDurable: a put returns at redundancy 1; the redundancy stays
// 0, or 1, until the last piece is there, while the uploaded bytes move.
func TestAcceptedIsNotDurable(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	content := replay.Made("siad", 1<<20)
	states := replay.Poll(replay.Steps(rec, "poll file mib40 until uploadprogress 100 and redundancy 3"))
	if len(states) < 5 {
		t.Fatalf("only %d states", len(states))
	}
	n := attached(t, replay.Chain(replay.Steps(rec, uploadStep), replay.Steps(rec, rightAfter), states),
		replay.Instead(uploadedSum, content), replay.Let("/renter/file/mib40", "/renter/file/streamed"))
	ref, err := n.Put(t.Context(), "streamed", 1<<20, bytes.NewReader(content))
	if err != nil || ref != "streamed" {
		t.Fatalf("%q, %v", ref, err)
	}
	if err := n.Settle(systemtest.Context(t), ref); err != nil {
		t.Error(err)
	}
}

// TestDeleteWaitsForWhatIsOnItsWay: an object that was just put is deleted when all of
// it has arrived; one that was settled is deleted without a question before.
func TestDeleteWaitsForWhatIsOnItsWay(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	content := replay.Made("siad", 1<<20)
	states := replay.Poll(replay.Steps(rec, "poll file mib40 until uploadprogress 100 and redundancy 3"))
	remove := slices.Clone(replay.Steps(rec, "missing file: delete"))
	remove[0].Path = "/renter/delete/streamed"
	remove[0] = remove[0].JSON(http.StatusNoContent, nil)
	for _, settled := range []bool{false, true} {
		n := attached(t, replay.Chain(replay.Steps(rec, uploadStep), replay.Steps(rec, rightAfter), states, remove),
			replay.Instead(uploadedSum, content), replay.Let("/renter/file/mib40", "/renter/file/streamed"))
		ref, err := n.Put(t.Context(), "streamed", 1<<20, bytes.NewReader(content))
		must(t, err)
		if settled {
			if err := n.Settle(systemtest.Context(t), ref); err != nil {
				t.Error(err)
			}
		}
		if err := n.Delete(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
}

// TestNotRepairedInTime: a host died and its pieces are not made anew.
func TestNotRepairedInTime(t *testing.T) {
	n := attached(t, replay.Poll(replay.Steps(replay.Load(t, "testdata/killed.jsonl"), "poll file mib1"))[1:])
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := n.Settle(ctx, "mib1")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not repaired in") ||
		!strings.Contains(err.Error(), "redundancy 2 of 3") {
		t.Errorf("got %v", err)
	}
}

// TestReadsComeFromHosts: the strict replay fails on a download that siad may
// answer from its own disk.
func TestReadsComeFromHosts(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	content := replay.Made("mib1", 1<<20)
	whole := replay.Steps(rec, "download mib1 from the hosts (disablelocalfetch=true)")
	part := replay.Steps(rec, "download by offset and length")
	cold := only(t, replay.Load(t, "testdata/killed.jsonl"), "poll file mib1", "/renter/file/mib1", 0)
	n := attached(t, replay.Chain(cold, whole, cold, part, cold, cold),
		replay.Instead(whole[0].Answer.Body.SHA256, content), replay.Instead(part[0].Answer.Body.SHA256,
			content[100:200]))
	if err := n.Cool(t.Context(), "mib1"); err != nil {
		t.Error(err)
	}
	var got bytes.Buffer
	if err := n.Get(t.Context(), "mib1", &got); err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	got.Reset()
	if err := n.GetRange(t.Context(), "mib1", 100, 100, &got); err != nil || !bytes.Equal(got.Bytes(),
		content[100:200]) {
		t.Errorf("range: %d bytes, %v", got.Len(), err)
	}
	// Over the end nothing is asked for that is not there.
	if err := n.GetRange(t.Context(), "mib1", 1<<20, 5, &got); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("at the end: %v", err)
	}
	if o, err := n.Stat(t.Context(), "mib1"); err != nil || o.Size != 1<<20 || o.Name != "mib1" {
		t.Errorf("stat: %+v, %v", o, err)
	}
}

// TestMissingIsSaidIn400And500: siad has no 404.
func TestMissingIsSaidIn400And500(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	get := replay.Steps(rec, "missing file: download")
	get[0].Query.Set("disablelocalfetch", "true")
	n := attached(t, replay.Chain(get, replay.Steps(rec, "missing file: file"), replay.Steps(rec, "missing file: file"),
		replay.Steps(rec, "missing file: delete")))
	n.Add("missing", 1)
	if err := n.Get(t.Context(), "missing", io.Discard); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := n.Stat(t.Context(), "missing"); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("stat: %v", err)
	}
	if err := n.Settle(t.Context(), "missing"); !errors.Is(err, system.ErrNotFound) || strings.Contains(err.Error(),
		"not repaired") {
		t.Errorf("settle: %v", err)
	}
	if err := n.Delete(t.Context(), "missing"); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("delete: %v", err)
	}
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
	if _, err := n.Put(t.Context(), "s", 1, strings.NewReader("x")); !errors.Is(err, system.ErrTooFew) {
		t.Errorf("put: %v", err)
	}
	// Attaching says so before anything is sent.
	ready := replay.Steps(rec, "uploadready")
	none := ready[0].JSON(200, map[string]any{"ready": false, "contractsneeded": 3, "numactivecontracts": 0,
		"datapieces": 1, "paritypieces": 2})
	s := replay.Serve(t, replay.Chain(passwordIsRight(t), only(t, rec, "report", "/consensus", 0),
		only(t, rec, "report", "/wallet", 0), []replay.Exchange{none}),
		replay.Let("/renter/download/mib1", checkPath))
	if _, err := tryAttach(t, s, true, nil); !errors.Is(err, system.ErrTooFew) || !strings.Contains(err.Error(),
		"0 contracts") {
		t.Errorf("attach: %v", err)
	}
}

// asideOfNothing is what siad says to a rename of a file that is not there.
func asideOfNothing(t *testing.T, ref, to string) []replay.Exchange {
	steps := slices.Clone(replay.Steps(replay.Load(t, "testdata/files.jsonl"), "missing file: delete"))
	steps[0].Path = "/renter/rename/" + ref
	steps[0].Header = steps[0].Header.Clone()
	steps[0].Header.Set("Content-Type", "application/x-www-form-urlencoded")
	steps[0].Body = replay.Body{Text: url.Values{"newsiapath": {to}}.Encode()}
	return steps
}

// removeAside is the deletion of all that was moved aside.
func removeAside(rec []replay.Exchange) []replay.Exchange {
	e := replay.Steps(rec, "missing file: delete")[0].JSON(http.StatusNoContent, nil)
	e.Path, e.Body = "/renter/dir/MARK-=cut-off", replay.Body{Text: "action=delete"}
	e.Header = e.Header.Clone()
	e.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return []replay.Exchange{e}
}

// TestFailedPutIsMovedAside: what a failed put left is deleted only when nothing of it
// can be on its way any more, and is no object until then.
func TestFailedPutIsMovedAside(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	content := replay.Made("siad", 1<<20)
	upload := replay.Steps(rec, uploadStep)
	upload[0].Answer = replay.Answer{End: replay.Refused}
	const to = "MARK-=cut-off/S-1"
	aside := asideOfNothing(t, "MARK-streamed", to)
	aside[0] = aside[0].JSON(http.StatusNoContent, nil)
	files := replay.Steps(rec, "renter/files")
	remove := removeAside(rec)
	n := attached(t, replay.Chain(upload, aside, files, remove), replay.Instead(uploadedSum, content),
		replay.Let("/renter/uploadstream/streamed", "/renter/uploadstream/MARK-streamed"),
		replay.Let(`"mib1"`, `"`+to+`"`),
		replay.Let(`"one"`, `"MARK-one"`))
	n.Mark, n.session = "MARK-", "S-"
	if _, err := n.Put(t.Context(), "streamed", 1<<20, bytes.NewReader(content)); err == nil {
		t.Error("no error")
	}
	all, err := system.All(t.Context(), n)
	if err != nil || len(all) != 1 || all[0].Ref != "MARK-one" {
		t.Errorf("%+v, %v", all, err)
	}
	for range 2 {
		if err := n.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestLeftByAKilledSession: what an earlier session of this run moved aside is in no
// reading and is deleted by this one, from a renter that is written to only.
func TestLeftByAKilledSession(t *testing.T) {
	const left = "MARK-=cut-off/EARLIER-1"
	for _, write := range []bool{true, false} {
		steps := replay.Steps(replay.Load(t, "testdata/files.jsonl"), "renter/files")
		if write {
			steps = replay.Chain(steps, removeAside(replay.Load(t, "testdata/files.jsonl")))
		}
		all := filesRead(t, steps)
		n := attached(t, steps, replay.Let(`"mib1"`, `"`+left+`"`))
		n.Mark, n.Write = "MARK-", write
		readings, err := n.readFiles(t.Context())
		if err != nil || readings[0].Name != system.ReadFiles || readings[0].Value != float64(all-1) {
			t.Errorf("write %v: %v, %v; the renter has %d files", write, readings, err, all)
		}
		if err := n.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// filesRead is how many files a recorded list has.
func filesRead(t *testing.T, steps []replay.Exchange) int {
	t.Helper()
	readings, err := attached(t, steps[:1]).readFiles(t.Context())
	if err != nil || readings[0].Value < 2 {
		t.Fatalf("%v, %v", readings, err)
	}
	return int(readings[0].Value)
}

// TestFailedPutRemovesOnlyItsOwn: a failed upload, begun or not, leaves no part
// of a file, and takes away none that is there. The strict replay fails on a
// rename that is not expected, and on one that does not come.
func TestFailedPutRemovesOnlyItsOwn(t *testing.T) {
	rec := replay.Load(t, "testdata/files.jsonl")
	content := replay.Made("siad", 1<<20)
	refused := only(t, replay.Load(t, "testdata/attach.jsonl"), wrong, "/renter/download/a", 0)[0].Answer // 401
	for what, answer := range map[string]replay.Answer{"connection reset": {End: replay.Refused},
		"wrong password": refused} {
		upload := replay.Steps(rec, uploadStep)
		upload[0].Answer = answer
		// Under this run's mark nobody else has anything.
		remove := asideOfNothing(t, "MARK-streamed", "MARK-=cut-off/S-1")
		if answer.Status == 0 { // a renter that may see only later that the put has ended
			remove = replay.Poll(remove)
		}
		n := attached(t, replay.Chain(upload, remove), replay.Instead(uploadedSum, content),
			replay.Let("/renter/uploadstream/streamed", "/renter/uploadstream/MARK-streamed"))
		n.Mark, n.session = "MARK-", "S-"
		if _, err := n.Put(t.Context(), "streamed", 1<<20, bytes.NewReader(content)); err == nil {
			t.Errorf("%s: no error", what)
		}
		// What an earlier put has stored stays.
		n = attached(t, upload, replay.Instead(uploadedSum, content))
		n.Add("streamed", 1<<20)
		if _, err := n.Put(t.Context(), "streamed", 1<<20, bytes.NewReader(content)); err == nil {
			t.Errorf("%s, stored before: no error", what)
		}
		if _, ours := n.Stored("streamed"); !ours {
			t.Errorf("%s: the earlier object is forgotten", what)
		}
	}
}

// A renter that hangs holds a put up until its deadline, and not for long after it.
func TestPutOfARenterThatHangs(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	base, err := url.Parse(server.URL)
	must(t, err)
	a := connect(base, secret, systemtest.Hosts(t, 1)[0])
	defer a.Close()
	n := newNode(a, system.Options{}, sia.Plan{Data: 1, Total: 3})
	const deadline = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	from := time.Now()
	_, err = n.Put(ctx, "hangs", 1<<20, bytes.NewReader(make([]byte, 1<<20)))
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
