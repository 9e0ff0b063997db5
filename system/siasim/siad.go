package siasim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// route is what siad does with a path. The part of it behind a prefix route's
// name is rest.
type route struct {
	method    string
	path      string // ends with a slash: a prefix
	protected bool   // refused without the password; reports are not
	serve     func(w http.ResponseWriter, r *http.Request, rest string)
}

// find is the route of a request and what its path has behind it. A request that
// has none is answered: by unknown, or because the path takes other methods.
func find(w http.ResponseWriter, r *http.Request, table []route, unknown func()) (*route, string) {
	var methods []string
	for i := range table {
		one := &table[i]
		rest, prefix := strings.CutPrefix(r.URL.Path, one.path)
		if r.URL.Path != one.path && (!prefix || !strings.HasSuffix(one.path, "/")) {
			continue
		}
		if methods = append(methods, one.method); one.method == r.Method {
			return one, rest
		}
	}
	if methods == nil {
		unknown()
		return nil, ""
	}
	w.Header().Set("Allow", strings.Join(append(methods, "OPTIONS"), ", "))
	http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	return nil, ""
}

func (s *Sim) siadTable() []route {
	return []route{
		{"GET", "/consensus", false, s.consensus},
		{"GET", "/daemon/version", false, s.version},
		{"GET", "/daemon/alerts", false, s.alerts},
		{"GET", "/daemon/constants", false, s.constants},
		{"GET", "/gateway", false, s.gateway},
		{"GET", "/hostdb", false, s.hostdb},
		{"GET", "/hostdb/active", false, s.hostdbActive},
		{"GET", "/hostdb/all", false, s.hostdbAll},
		{"GET", "/tpool/fee", false, s.fee},
		{"GET", "/wallet", false, s.siadWallet},
		{"GET", "/wallet/address", true, s.walletAddress},
		{"POST", "/wallet/unlock", true, s.unlock},
		{"POST", "/wallet/lock", true, s.lock},
		{"GET", "/renter", false, s.renter},
		{"POST", "/renter", true, s.allow},
		{"GET", "/renter/contracts", false, s.contracts},
		{"GET", "/renter/prices", false, s.prices},
		{"GET", "/renter/uploadready", false, s.uploadready},
		{"GET", "/renter/downloads", false, s.downloads},
		{"GET", "/renter/files", false, s.filesAnswer},
		{"GET", "/renter/file/", false, s.fileAnswer},
		{"GET", "/renter/download/", true, s.download},
		{"GET", "/renter/stream/", false, s.stream},
		{"POST", "/renter/uploadstream/", true, s.uploadstream},
		{"POST", "/renter/upload/", true, s.uploadSource},
		{"POST", "/renter/delete/", true, s.deleteFile},
		{"POST", "/renter/rename/", true, s.renameFile},
	}
}

func (s *Sim) siadRoutes() http.Handler {
	table := s.siadTable()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.UserAgent(), "Sia-Agent") {
			siadError(w, http.StatusBadRequest, "Browser access disabled due to security vulnerability. Use Sia-UI or siac.")
			return
		}
		one, rest := find(w, r, table, func() { siadError(w, 491, "491 Module disabled - Refer to API.md") })
		if one == nil {
			return
		}
		if _, password, _ := r.BasicAuth(); one.protected && password != s.conf.Password {
			w.Header().Set("Www-Authenticate", `Basic realm="SiaAPI"`)
			siadError(w, http.StatusUnauthorized, "API authentication failed.")
			return
		}
		one.serve(w, r, rest)
	})
}

const siadType = "application/json; charset=utf-8"

func siadError(w http.ResponseWriter, status int, format string, args ...any) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	_ = e.Encode(map[string]string{"message": fmt.Sprintf(format, args...)})
	w.Header().Set("Content-Type", siadType)
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
}

// report answers with what state tells, in the middle of the call.
func (s *Sim) report(w http.ResponseWriter, state func() any) {
	s.mu.Lock()
	s.advance()
	v := state()
	s.mu.Unlock()
	answerJSON(w, siadType, v)
}

func (s *Sim) consensus(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any { return s.consensusAnswer() })
}

func (s *Sim) version(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any { return versionAnswer{Version: s.conf.Version} })
}

func (s *Sim) alerts(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any { return s.alertsAnswer() })
}

func (s *Sim) constants(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any {
		return map[string]any{"blockfrequency": int64(s.conf.BlockTime.Seconds()), "siacoinprecision": "1000000000000000000000000"}
	})
}

func (s *Sim) gateway(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any {
		a := gatewayAnswer{Address: "198.51.100.1:9981", Peers: []peerAnswer{}, Online: true}
		for i := range s.conf.Peers {
			a.Peers = append(a.Peers, peerAnswer{Inbound: i%4 == 3, Address: fmt.Sprintf("203.0.113.%d:9981", 1+i%250), Version: "1.5.4"})
		}
		return a
	})
}

func (s *Sim) hostdb(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any { return map[string]bool{"initialscancomplete": true} })
}

func (s *Sim) hostdbActive(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any { return s.hostsAnswer(func(h *host) bool { return !h.dropped }) })
}

func (s *Sim) hostdbAll(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any { return s.hostsAnswer(func(*host) bool { return true }) })
}

func (s *Sim) fee(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any {
		return map[string]string{"minimum": "10000000000000000000", "maximum": "30000000000000000000"}
	})
}

func (s *Sim) siadWallet(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any { return s.walletAnswer() })
}

func (s *Sim) walletAddress(w http.ResponseWriter, _ *http.Request, _ string) {
	s.mu.Lock()
	locked := s.wallet.locked
	s.mu.Unlock()
	if locked {
		siadError(w, http.StatusBadRequest, "error when calling /wallet/addresses: wallet must be unlocked before it can be used")
		return
	}
	answerJSON(w, siadType, map[string]string{"address": strings.Repeat("0", 76)})
}

func (s *Sim) unlock(w http.ResponseWriter, r *http.Request, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	switch {
	case !s.wallet.locked:
		siadError(w, http.StatusBadRequest, "error when calling /wallet/unlock: wallet has already been unlocked")
	case r.FormValue("encryptionpassword") != s.conf.WalletPassword:
		siadError(w, http.StatusBadRequest, "error when calling /wallet/unlock: [cipher: message authentication failed; [failed to decrypt key; provided encryption key is incorrect]]")
	default:
		s.wallet.locked = false
		s.wantContracts()
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Sim) lock(w http.ResponseWriter, _ *http.Request, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.wallet.locked = true
	w.WriteHeader(http.StatusNoContent)
}

func (s *Sim) renter(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any { return s.renterAnswer() })
}

// allow sets the allowance. 204 says that it was taken, not that the wallet,
// locked or empty, can pay for contracts.
func (s *Sim) allow(w http.ResponseWriter, r *http.Request, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	a := s.allowance
	if text := r.FormValue("funds"); text != "" {
		funds, ok := new(big.Int).SetString(text, 10)
		if !ok {
			siadError(w, http.StatusBadRequest, "unable to parse funds")
			return
		}
		a.Funds = hastings{funds}
	}
	for name, field := range map[string]*int64{
		"hosts": &a.Hosts, "period": &a.Period, "renewwindow": &a.RenewWindow,
		"expectedstorage": &a.ExpectedStorage, "expectedupload": &a.ExpectedUpload, "expecteddownload": &a.ExpectedDownload, "maxperiodchurn": &a.MaxPeriodChurn,
	} {
		if text := r.FormValue(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				siadError(w, http.StatusBadRequest, "unable to parse %s", name)
				return
			}
			*field = n
		}
	}
	switch {
	case r.FormValue("hosts") == "0":
		siadError(w, http.StatusBadRequest, "hosts must be non-zero")
		return
	case a.Period == 0:
		siadError(w, http.StatusBadRequest, "period needs to be set if it hasn't been set before")
		return
	}
	s.allowance = a
	s.wantContracts()
	w.WriteHeader(http.StatusNoContent)
}

func (s *Sim) contracts(w http.ResponseWriter, r *http.Request, _ string) {
	q := r.URL.Query()
	s.report(w, func() any { return s.contractsAnswer(q) })
}

func (s *Sim) prices(w http.ResponseWriter, _ *http.Request, _ string) {
	if len(s.hosts) == 0 {
		siadError(w, http.StatusBadRequest, "[could not generate estimate, could not get random hosts; initial hostdb scan is not yet completed]")
		return
	}
	s.report(w, func() any { return s.pricesAnswer() })
}

func (s *Sim) uploadready(w http.ResponseWriter, r *http.Request, _ string) {
	data, parity, ok := s.asked(w, r.URL.Query())
	if !ok {
		return
	}
	s.report(w, func() any {
		good := int64(len(s.good(s.now)))
		return readyAnswer{Ready: good >= int64(data+parity), Needed: int64(data + parity), Active: good, Data: int64(data), Parity: int64(parity)}
	})
}

// asked are the pieces of an upload.
func (s *Sim) asked(w http.ResponseWriter, q url.Values) (data, parity int, ok bool) {
	d, p := q.Get("datapieces"), q.Get("paritypieces")
	if d == "" && p == "" {
		return s.conf.Data, s.conf.Parity, true
	}
	if d == "" || p == "" {
		siadError(w, http.StatusBadRequest, "unable to parse erasure code settings: must provide both the datapieces parameter and the paritypieces parameter if specifying erasure coding parameters")
		return 0, 0, false
	}
	data, err1 := strconv.Atoi(d)
	parity, err2 := strconv.Atoi(p)
	if err1 != nil || err2 != nil || data < 1 || parity < 1 {
		siadError(w, http.StatusBadRequest, "unable to parse erasure code settings: unable to read parameter 'datapieces'")
		return 0, 0, false
	}
	return data, parity, true
}

func (s *Sim) downloads(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any { return map[string]any{"downloads": nil} })
}

func (s *Sim) filesAnswer(w http.ResponseWriter, _ *http.Request, _ string) {
	s.report(w, func() any {
		var a struct {
			Files []fileJSON `json:"files"` // null when there are none
		}
		for _, path := range s.paths() {
			a.Files = append(a.Files, s.fileJSON(s.files[path]))
		}
		if len(a.Files) > 0 && within(s.faults.Underflow, s.now) {
			a.Files[0].Uploaded = math.MaxUint64 - a.Files[0].Uploaded
		}
		return a
	})
}

func (s *Sim) paths() []string {
	var all []string
	for path := range s.files {
		if !strings.HasPrefix(path, bucketMark) {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

func (s *Sim) fileAnswer(w http.ResponseWriter, _ *http.Request, path string) {
	s.mu.Lock()
	s.advance()
	f, there := s.files[path]
	if !there {
		s.mu.Unlock()
		siadError(w, http.StatusBadRequest, "[unable to get the fileinfo from the filesystem; path does not exist]")
		return
	}
	a := map[string]fileJSON{"file": s.fileJSON(f)}
	s.mu.Unlock()
	answerJSON(w, siadType, a)
}

// badPath is why a path cannot be a file's; empty: it can.
func badPath(path string) string {
	switch {
	case path == "":
		return "[invalid SiaPath; path must be a nonempty string]"
	case strings.HasPrefix(path, "../"):
		return "[invalid SiaPath; path cannot begin with ../]"
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Sprintf("[invalid SiaPath; path has the part %q]", part)
		}
	}
	return ""
}

// needs is how many contracts an upload needs; uploadready wants more.
func needs(data, parity int) int { return data + parity/2 }

// refused answers an upload that is not taken at all. Under s.mu.
func (s *Sim) refused(w http.ResponseWriter, path string, data, parity int, force bool, wrap string) bool {
	if why := badPath(path); why != "" {
		siadError(w, http.StatusBadRequest, "%s", why)
		return true
	}
	if old, taken := s.files[path]; taken {
		if !force {
			siadError(w, http.StatusInternalServerError, "upload failed: [could not create a new sia file; a file or folder already exists at the specified path]")
			return true
		}
		s.remove(old)
	}
	if got, need := len(s.good(s.now)), needs(data, parity); got < need {
		siadError(w, http.StatusInternalServerError, wrap, fmt.Sprintf("not enough contracts to upload file: got %d, needed %d", got, need))
		return true
	}
	return false
}

// swallowed says that an upload is answered 204 and stored nowhere: the wallet
// is locked or has run dry.
func (s *Sim) swallowed() bool {
	return s.wallet.locked || !s.solvent(s.now) || within(s.faults.Swallow, s.now)
}

// uploadstream stores the body. It answers when every chunk can be rebuilt.
func (s *Sim) uploadstream(w http.ResponseWriter, r *http.Request, path string) {
	q := r.URL.Query()
	data, parity, ok := s.asked(w, q)
	if !ok {
		return
	}
	s.mu.Lock()
	s.advance()
	refused := s.refused(w, path, data, parity, q.Get("force") == "true", "upload failed: [unable to stream an upload from a reader; %s]")
	s.mu.Unlock()
	if refused {
		return
	}
	got := receive(r.Body, s.conf.KeepEach)
	s.mu.Lock()
	s.advance()
	if got.err == nil && s.swallowed() {
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if _, taken := s.files[path]; taken {
		s.mu.Unlock()
		siadError(w, http.StatusInternalServerError, "upload failed: [could not create a new sia file; a file or folder already exists at the specified path]")
		return
	}
	f := s.newFile(path, got.size, data, parity, true)
	s.take(f, got)
	if got.err != nil { // what there is stays, and is not uploaded
		s.mu.Unlock()
		siadError(w, http.StatusInternalServerError, "upload failed: [unable to stream an upload from a reader; %v]", got.err)
		return
	}
	s.queue(f)
	s.mu.Unlock()
	if !s.stored(r.Context(), f) {
		siadError(w, http.StatusInternalServerError, "upload failed: [unable to stream an upload from a reader; file was deleted]")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// uploadSource queues a file of the renter's disk and answers at once.
func (s *Sim) uploadSource(w http.ResponseWriter, r *http.Request, path string) {
	if err := r.ParseForm(); err != nil {
		siadError(w, http.StatusBadRequest, "unable to parse form")
		return
	}
	data, parity, ok := s.asked(w, r.Form)
	if !ok {
		return
	}
	source := r.Form.Get("source")
	if why := badPath(path); why != "" {
		siadError(w, http.StatusBadRequest, "%s", why)
		return
	}
	if !filepath.IsAbs(source) {
		siadError(w, http.StatusBadRequest, "source must be an absolute path")
		return
	}
	in, err := os.Open(source)
	if err != nil {
		siadError(w, http.StatusInternalServerError, "upload failed: [unable to stat input file; stat %s: no such file or directory]", source)
		return
	}
	got := receive(in, s.conf.KeepEach)
	_ = in.Close()
	if got.err != nil {
		siadError(w, http.StatusInternalServerError, "upload failed: [unable to open the source file; %v]", got.err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	if s.refused(w, path, data, parity, r.Form.Get("force") == "true", "upload failed: %s") {
		return
	}
	if !s.swallowed() {
		f := s.newFile(path, got.size, data, parity, false)
		f.local = source
		s.take(f, got)
		s.queue(f)
	}
	w.WriteHeader(http.StatusNoContent)
}

// download answers with the content, or with why not.
func (s *Sim) download(w http.ResponseWriter, r *http.Request, path string) {
	q := r.URL.Query()
	fail := func(why string) { siadError(w, http.StatusInternalServerError, "download creation failed: %s", why) }
	switch {
	case q.Get("httpresp") != "true" && q.Get("destination") == "":
		fail("destination not supplied")
		return
	case q.Get("httpresp") != "true":
		fail("the simulator writes no files")
		return
	case q.Get("destination") != "":
		fail("destination cannot be specified when downloading to http response")
		return
	}
	f, r2, why := s.open(path)
	if why != "" {
		fail(why)
		return
	}
	off, length := int64(0), f.size
	if text := q.Get("offset"); text != "" {
		off, _ = strconv.ParseInt(text, 10, 64)
		length = f.size - off
	}
	if text := q.Get("length"); text != "" {
		length, _ = strconv.ParseInt(text, 10, 64)
	}
	if off < 0 || length < 0 || off+length > f.size {
		fail("offset and length combination invalid, max byte is at index " + strconv.FormatInt(f.size-1, 10))
		return
	}
	s.send(w, r2, off, length, http.StatusOK)
}

// open finds a file and its content.
func (s *Sim) open(path string) (*file, io.Reader, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	f, there := s.files[path]
	switch {
	case !there:
		return nil, nil, "path does not exist"
	case f.redundancy() < 1:
		return nil, nil, "not enough workers to complete download"
	}
	content, kept := s.content(f)
	if !kept {
		return nil, nil, "the simulator has not kept the content"
	}
	if !s.payDownload(f.size) {
		return nil, nil, "not enough workers to complete download"
	}
	return f, content, ""
}

func (s *Sim) send(w http.ResponseWriter, r io.Reader, off, length int64, status int) {
	part, err := span(r, off, length)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	w.WriteHeader(status)
	if h, ok := w.(*held); ok {
		h.release()
	}
	_, _ = io.Copy(w, part)
}

// stream is download without a password and without paying attention to where
// the content comes from; it knows ranges.
func (s *Sim) stream(w http.ResponseWriter, r *http.Request, path string) {
	f, content, why := s.open(path)
	if why != "" {
		siadError(w, http.StatusInternalServerError, "failed to create download streamer: %s", why)
		return
	}
	body, err := io.ReadAll(content)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", s.epoch.Add(f.changed), bytes.NewReader(body))
}

func (s *Sim) deleteFile(w http.ResponseWriter, _ *http.Request, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	f, there := s.files[path]
	if !there {
		siadError(w, http.StatusBadRequest, "[unable to delete siafile from filesystem; path does not exist; stat /renter/fs/home/user/%s.sia: no such file or directory]", path)
		return
	}
	s.remove(f)
	w.WriteHeader(http.StatusNoContent)
}

func (s *Sim) renameFile(w http.ResponseWriter, r *http.Request, path string) {
	to := strings.TrimPrefix(r.FormValue("newsiapath"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	f, there := s.files[path]
	_, taken := s.files[to]
	switch {
	case !there:
		siadError(w, http.StatusBadRequest, "path does not exist")
	case badPath(to) != "":
		siadError(w, http.StatusBadRequest, "%s", badPath(to))
	case taken:
		siadError(w, http.StatusBadRequest, "a file or folder already exists at the specified path")
	default:
		delete(s.files, path)
		f.path = to
		s.files[to] = f
		w.WriteHeader(http.StatusNoContent)
	}
}
