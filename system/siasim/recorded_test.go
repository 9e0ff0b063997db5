package siasim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system/internal/replay"
	"github.com/plimsoll-project/plimsoll/system/siasim"
)

// asker sends recorded requests to a simulator.
type asker struct {
	api              http.Handler
	password, wallet string
	folder           string // where sources are
}

func (a asker) ask(t *testing.T, e replay.Exchange) *httptest.ResponseRecorder {
	t.Helper()
	body := e.Body.Text
	if e.Body.Opaque {
		body = strings.Repeat("x", int(e.Body.Bytes))
	}
	if form, err := url.ParseQuery(body); err == nil && strings.HasPrefix(e.Header.Get("Content-Type"), "application/x-www-form") {
		if source := form.Get("source"); filepath.IsAbs(source) {
			form.Set("source", filepath.Join(a.folder, filepath.Base(source)))
		}
		if word := form.Get("encryptionpassword"); word == "x" {
			form.Set("encryptionpassword", a.wallet)
		}
		body = form.Encode()
	}
	u := url.URL{Path: e.Path, RawQuery: e.Query.Encode()}
	r := httptest.NewRequest(e.Method, "http://sim"+u.String(), strings.NewReader(body))
	r.URL.Path = e.Path // with its ..
	for _, name := range []string{"User-Agent", "Content-Type", "Range", "If-None-Match"} {
		if v := e.Header.Get(name); v != "" {
			r.Header.Set(name, v)
		}
	}
	switch login := e.Header.Get("Authorization"); {
	case strings.Contains(login, "wrong"):
		r.SetBasicAuth("", "not it")
	case login != "":
		r.SetBasicAuth("", a.password)
	}
	w := httptest.NewRecorder()
	a.api.ServeHTTP(w, r)
	return w
}

// check asks and compares status, kind, shape and, of an error, what it says.
func (a asker) check(t *testing.T, e replay.Exchange) {
	t.Helper()
	w := a.ask(t, e)
	where := fmt.Sprintf("%s: %s %s", e.Step, e.Method, e.Path)
	got := w.Body.String()
	if w.Code != e.Answer.Status {
		t.Errorf("%s: status %d, recorded %d (%.200s)", where, w.Code, e.Answer.Status, got)
		return
	}
	for _, name := range []string{"Content-Type", "Www-Authenticate", "Etag", "Content-Range", "Accept-Ranges"} {
		want, is := e.Answer.Header.Get(name), w.Header().Get(name)
		if name == "Etag" && (want == "") == (is == "") && len(want) == len(is) || name == "Content-Type" && w.Code < 300 && e.Answer.Body.Opaque {
			continue
		}
		if want != is {
			t.Errorf("%s: header %s is %q, recorded %q", where, name, is, want)
		}
	}
	switch {
	case e.Method == http.MethodHead:
	case e.Answer.Body.Opaque:
		if int64(len(got)) != e.Answer.Body.Bytes {
			t.Errorf("%s: %d bytes, recorded %d", where, len(got), e.Answer.Body.Bytes)
		}
	case e.Answer.Body.JSON:
		var want, is any
		if err := json.Unmarshal([]byte(e.Answer.Body.Text), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(got), &is); err != nil {
			t.Errorf("%s: %v in %.200q", where, err, got)
			return
		}
		for _, problem := range differences("", want, is) {
			t.Errorf("%s: %s", where, problem)
		}
		if w.Code >= 400 {
			text := func(v any) string {
				s, _ := v.(map[string]any)["message"].(string)
				s, _, _ = strings.Cut(s, "<data-root>")
				return s
			}
			if !strings.HasPrefix(text(is), text(want)) && !strings.Contains(text(want), "stat ") {
				t.Errorf("%s: says %q, recorded %q", where, text(is), text(want))
			}
		}
	case w.Code < 300:
		if len(got) != len(e.Answer.Body.Text) {
			t.Errorf("%s: %d bytes, recorded %d", where, len(got), len(e.Answer.Body.Text))
		}
	default:
		if got != e.Answer.Body.Text {
			t.Errorf("%s: %q, recorded %q", where, got, e.Answer.Body.Text)
		}
	}
}

// differences are those of keys and JSON types; of lists the first entries are
// compared. A list may be null: its state is another.
func differences(at string, want, is any) (all []string) {
	if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", is) {
		_, list1 := want.([]any)
		_, list2 := is.([]any)
		if want == nil && list2 || is == nil && list1 {
			return nil
		}
		return []string{fmt.Sprintf("%s is a %T, recorded a %T", at, is, want)}
	}
	switch want := want.(type) {
	case map[string]any:
		is := is.(map[string]any)
		want, is = named(want), named(is)
		for k, v := range want {
			if other, ok := is[k]; ok {
				all = append(all, differences(at+"."+k, v, other)...)
			} else {
				all = append(all, at+"."+k+" is missing")
			}
		}
		for k := range is {
			if _, ok := want[k]; !ok && !slices.Contains(trimmed, k) {
				all = append(all, at+"."+k+" was not recorded")
			}
		}
	case []any:
		is := is.([]any)
		if len(want) > 0 && len(is) > 0 {
			if _, trimmed := want[0].(string); !trimmed {
				return differences(at+"[0]", want[0], is[0])
			}
		}
	}
	return all
}

// named is m with one name for all hosts.
func named(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if strings.HasPrefix(k, "ed25519:") {
			k = "a host"
		}
		out[k] = v
	}
	return out
}

// trimmed are long parts of answers that the neighbours' recordings leave out;
// those here have them.
var trimmed = []string{"memorystatus", "lasttransaction", "scanhistory", "target", "roottarget", "rootdepth"}

// private is the private network on which siad was recorded.
func private(contracts int) siasim.Config {
	c := siasim.Config{
		Height: 31, Period: 200, RenewWindow: 50, Hosts: 4, Contracts: contracts, Data: 1, Parity: 1, Sector: 256 << 10,
		Up: siasim.Bandwidth{Start: 1e12}, KeepEach: 64 << 20, KeepBytes: 256 << 20,
	}
	return c
}

// TestAnswersAsRecordedWithFiles goes through the recorded calls about files.
func TestAnswersAsRecordedWithFiles(t *testing.T) {
	s := start(t, private(3))
	a := asker{api: s.Siad(), password: siasim.Defaults().Password, wallet: siasim.Defaults().WalletPassword, folder: t.TempDir()}
	for name, size := range map[string]int{"one": 1, "mib1": 1 << 20, "mib40": 40 << 20} {
		if err := os.WriteFile(filepath.Join(a.folder, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		form := url.Values{"source": {"/" + name}, "datapieces": {"1"}, "paritypieces": {"2"}}
		e := replay.Exchange{Method: "POST", Path: "/renter/upload/" + name, Header: http.Header{
			"User-Agent": {"Sia-Agent"}, "Authorization": {"right"}, "Content-Type": {"application/x-www-form-urlencoded"},
		}, Body: replay.Body{Text: form.Encode()}}
		if w := a.ask(t, e); w.Code != http.StatusNoContent {
			t.Fatalf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	compared := 0
	for _, e := range replay.Load(t, "../siad/testdata/files.jsonl") {
		// Not simulated: folders, files that the renter writes, stopping.
		if slices.Contains([]string{"directory", "clean lost files", "stop the daemon", "download to a local path (blocking)", "relative destination"}, e.Step) {
			continue
		}
		a.check(t, e)
		compared++
	}
	for _, e := range replay.Load(t, "testdata/siad-reports.jsonl") {
		if e.Answer.Status == 200 {
			a.check(t, e)
			compared++
		}
	}
	if compared < 40 {
		t.Errorf("only %d recorded calls were compared", compared)
	}
}

// TestAnswersAsRecordedBeforeFiles goes through those about passwords, locked
// wallets and allowances on a renter without contracts.
func TestAnswersAsRecordedBeforeFiles(t *testing.T) {
	c := private(-1)
	c.Locked = true
	s := start(t, c)
	a := asker{api: s.Siad(), password: siasim.Defaults().Password, wallet: siasim.Defaults().WalletPassword, folder: t.TempDir()}
	left := []string{
		// Not simulated: making wallets, sending money, connecting, mining, stopping.
		"/wallet/seeds", "/wallet/init", "/wallet/siacoins", "/gateway/connect/127.0.0.1:9", "/daemon/stop", "/miner/start",
		"/renter/prices", "/hostdb/active", // hosts were not known yet
	}
	compared := 0
	for _, e := range replay.Load(t, "../siad/testdata/attach.jsonl") {
		switch {
		case slices.Contains(left, e.Path), strings.HasPrefix(e.Step, "uploadready"), strings.HasPrefix(e.Step, "download with"):
			continue
		case e.Step == "upload with an allowance but no contracts": // its source is there
			if err := os.WriteFile(filepath.Join(a.folder, "one"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if e.Step == "allowance: period 0" || e.Step == "locked wallet: address" && compared > 20 || e.Step == "locked wallet: set an allowance" || e.Step == "locked wallet: wallet" {
			continue // another renter's, in another state
		}
		a.check(t, e)
		compared++
	}
	if compared < 25 {
		t.Errorf("only %d recorded calls were compared", compared)
	}
}

// TestRenterdAnswersAsRecorded goes through the recorded calls of renterd.
func TestRenterdAnswersAsRecorded(t *testing.T) {
	s := start(t, siasim.Config{
		Hosts: 3, Contracts: 3, Data: 2, Parity: 1, Up: siasim.Bandwidth{Start: 1e12}, KeepEach: 64 << 20, KeepBytes: 256 << 20,
	})
	a := asker{api: s.Renterd(), password: siasim.Defaults().Password}
	objects := replay.Load(t, "../renterd/testdata/objects.jsonl")
	remove := slices.IndexFunc(objects, func(e replay.Exchange) bool { return strings.HasPrefix(e.Step, "delete") })
	all := slices.Concat(
		replay.Load(t, "../renterd/testdata/attach.jsonl"), objects[:remove], replay.Load(t, "../renterd/testdata/listing.jsonl"),
		replay.Load(t, "../renterd/testdata/errors.jsonl"), objects[remove:],
	)
	compared := 0
	for _, e := range all {
		switch {
		case strings.HasPrefix(e.Path, "/api/worker/stats/"), strings.HasPrefix(e.Path, "/api/bus/contract/"):
			continue // not simulated
		case strings.HasPrefix(e.Step, "upload 1 MiB number 8 of 8"):
			for i := 1; i < 7; i++ { // they are not in the recording
				between := e
				between.Path = fmt.Sprintf("/api/worker/object/on/fill%d", i)
				a.check(t, between)
			}
		case e.Step == "list after":
			continue // a removal in between is not in the recording
		}
		a.check(t, e)
		compared++
	}
	if compared < 100 {
		t.Errorf("only %d recorded calls were compared", compared)
	}
	wantAccounts(t, s.Truth())
}
