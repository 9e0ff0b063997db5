package siasim

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// object is one of JSON.
type object = map[string]any

// siadRoutes are those that the adapter uses. As siad's, reports need no password.
func (s *Sim) siadRoutes() http.Handler {
	mux := http.NewServeMux()
	for path, report := range map[string]func() any{
		"/consensus": func() any { return object{"synced": true, "height": s.height()} },
		"/daemon/version": func() any {
			return object{"version": "1.5.9"}
		},
		"/gateway":            func() any { return object{"peers": make([]object, 8)} },
		"/hostdb/active":      func() any { return object{"hosts": make([]object, s.known())} },
		"/wallet":             s.siadWallet,
		"/renter":             s.renter,
		"/renter/contracts":   s.siadContracts,
		"/renter/prices":      s.prices,
		"/renter/uploadready": s.ready,
		"/renter/files":       s.siadFiles,
	} {
		mux.HandleFunc("GET "+path, s.report(report))
	}
	mux.HandleFunc("GET /renter/file/{path...}", func(w http.ResponseWriter, r *http.Request) {
		defer s.lock()()
		if f := s.siadFind(w, r); f != nil {
			answer(w, object{"file": s.siadFile(f)})
		}
	})
	for route, serve := range map[string]http.HandlerFunc{
		"GET /renter/download/{path...}":      s.download,
		"POST /renter/uploadstream/{path...}": s.uploadstream,
		"POST /renter/delete/{path...}": func(w http.ResponseWriter, r *http.Request) {
			defer s.lock()()
			if f := s.siadFind(w, r); f != nil {
				s.remove(f)
				w.WriteHeader(http.StatusNoContent)
			}
		},
		"POST /renter/dir/{path...}": func(w http.ResponseWriter, r *http.Request) {
			defer s.lock()()
			for path, f := range s.files {
				if strings.HasPrefix(path, r.PathValue("path")+"/") && r.FormValue("action") == "delete" {
					s.remove(f)
				}
			}
			w.WriteHeader(http.StatusNoContent)
		},
		"POST /renter/rename/{path...}": func(w http.ResponseWriter, r *http.Request) {
			defer s.lock()()
			if f := s.siadFind(w, r); f != nil {
				delete(s.files, f.path)
				f.path = r.FormValue("newsiapath")
				s.files[f.path] = f
				w.WriteHeader(http.StatusNoContent)
			}
		},
	} {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			if _, password, _ := r.BasicAuth(); password != Password {
				siadError(w, http.StatusUnauthorized, "API authentication failed.")
				return
			}
			serve(w, r)
		})
	}
	return mux
}

func siadError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

// siadFind is the file that a request names; nil: there is none, which is answered.
func (s *Sim) siadFind(w http.ResponseWriter, r *http.Request) *file {
	f := s.files[r.PathValue("path")]
	if f == nil {
		siadError(w, http.StatusBadRequest, "[unable to get the fileinfo from the filesystem; path does not exist]")
	}
	return f
}

// known is how many hosts hostdb takes for active.
func (s *Sim) known() (n int) {
	for _, h := range s.hosts {
		if !h.dropped {
			n++
		}
	}
	return n
}

func (s *Sim) siadWallet() any {
	return object{
		"encrypted": true, "unlocked": true, "confirmedsiacoinbalance": s.wallet.String(),
		"unconfirmedoutgoingsiacoins": "0", "unconfirmedincomingsiacoins": "0",
	}
}

func (s *Sim) renter() any {
	return object{
		"settings": object{"allowance": object{"funds": SC(initialWallet).String(), "hosts": s.conf.Contracts,
			"period": period, "renewwindow": period / 3}},
	}
}

// siadContracts are all, by the lists that siad has of them.
func (s *Sim) siadContracts() any {
	lists := map[string][]object{string(active): nil, string(refreshed): nil, string(expired): nil} // null when empty
	absurd := s.has(s.conf.Faults.Underflow)
	for _, c := range s.contracts {
		one := object{
			"id": c.id, "size": c.size, "goodforupload": c.state == active && !s.has(s.conf.Faults.Full),
			"totalcost": c.total().String(), "renterfunds": c.funds.String(),
			"fees": c.fees.String(), "storagespending": c.storage.String(), "uploadspending": c.upload.String(),
			"downloadspending": c.download.String(), "fundaccountspending": "0",
			"maintenancespending": object{"accountbalancecost": "0", "fundaccountcost": "0",
				"updatepricetablecost": "0"},
		}
		if absurd && c.state == active {
			one["size"], one["renterfunds"] = math.MaxUint64-uint64(c.size), "-1"
			absurd = false
		}
		lists[string(c.state)] = append(lists[string(c.state)], one)
	}
	return lists
}

// prices are siad's estimates: hosts' prices, times the usual redundancy of 3
// where they are for data that is stored, and a margin of a fifth.
func (s *Sim) prices() any {
	terabytes := func(price, fifths int64) string {
		return new(big.Int).Mul(big.NewInt(price), big.NewInt(1e12*fifths/5)).String()
	}
	return object{
		"downloadterabyte": terabytes(downloadPrice, 6), "uploadterabyte": terabytes(uploadPrice, 18),
		"storageterabytemonth": terabytes(storagePrice*4320, 18),
		"formcontracts":        SC(contractFees * int64(s.conf.Contracts)).String(),
	}
}

// good is how many contracts take sectors.
func (s *Sim) good() int {
	if s.has(s.conf.Faults.Full) {
		return 0
	}
	return len(s.active())
}

func (s *Sim) ready() any {
	need := s.conf.Data + s.conf.Parity
	return object{
		"ready": s.good() >= need, "contractsneeded": need, "numactivecontracts": s.good(),
		"datapieces": s.conf.Data, "paritypieces": s.conf.Parity,
	}
}

func (s *Sim) siadFiles() any {
	var all []object // null when there are none
	for _, f := range s.files {
		all = append(all, s.siadFile(f))
	}
	slices.SortFunc(all, func(a, b object) int { return strings.Compare(a["siapath"].(string), b["siapath"].(string)) })
	if len(all) > 0 && s.has(s.conf.Faults.Underflow) {
		all[0]["uploadedbytes"] = uint64(math.MaxUint64)
	}
	return object{"files": all}
}

func (s *Sim) siadFile(f *file) object {
	progress := 100.0
	switch {
	case f.incomplete:
		progress = 0
	case f.chunks > 0:
		progress = min(100, 100*float64(f.placed)/float64(f.chunks*f.full))
	}
	redundancy := f.redundancy()
	pieces := min(redundancy*float64(f.data), float64(f.full))
	return object{
		"siapath": f.path, "filesize": f.size, "uploadedbytes": int64(f.placed) * s.conf.Sector,
		"uploadprogress": progress,
		"redundancy":     redundancy, "available": redundancy >= 1,
		"health": 1 - (pieces-float64(f.data))/float64(f.full-f.data),
	}
}

// uploadstream stores the body. It answers when every chunk can be rebuilt.
func (s *Sim) uploadstream(w http.ResponseWriter, r *http.Request) {
	path, need := r.PathValue("path"), s.conf.Data+s.conf.Parity/2
	refused := ""
	unlock := s.lock()
	if s.files[path] != nil {
		refused = exists
	} else if s.good() < need {
		refused = fmt.Sprintf("unable to stream an upload from a reader; not enough contracts to upload file: got "+
			"%d, needed %d", s.good(), need)
	}
	unlock()
	if refused == "" {
		refused = s.take(r.Context(), s.receive(path, r.Body))
	}
	if refused != "" {
		siadError(w, http.StatusInternalServerError, "upload failed: ["+refused+"]")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

const exists = "could not create a new sia file; a file or folder already exists at the specified path"

// take stores what was received, and waits until it is accepted; why not is returned.
func (s *Sim) take(ctx context.Context, f *file) (refused string) {
	unlock := s.lock()
	taken, swallowed := s.files[f.path] != nil, !f.incomplete && s.has(s.conf.Faults.Swallow)
	f.accept = f.chunks * f.data
	if !taken && !swallowed {
		if !f.incomplete { // else what there is stays, and is not uploaded
			s.overshoot(f)
		}
		s.add(f)
	}
	unlock()
	switch {
	case taken:
		return exists
	case swallowed:
		return ""
	case f.incomplete:
		return "unable to stream an upload from a reader; unexpected EOF"
	case !s.accepted(ctx, f):
		return "unable to stream an upload from a reader; file was deleted"
	}
	return ""
}

// download answers with the content, or with why not.
func (s *Sim) download(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	unlock := s.lock()
	f := s.files[r.PathValue("path")]
	why := ""
	switch {
	case q.Get("httpresp") != "true":
		why = "destination not supplied"
	case f == nil:
		why = "path does not exist"
	case f.redundancy() < 1:
		why = "not enough workers to complete download"
	}
	unlock()
	if why == "" {
		off, _ := strconv.ParseInt(q.Get("offset"), 10, 64)
		length := f.size - off
		if text := q.Get("length"); text != "" {
			length, _ = strconv.ParseInt(text, 10, 64)
		}
		if s.send(w, f, off, length) {
			return
		}
		why = "not enough workers to complete download"
	}
	siadError(w, http.StatusInternalServerError, "download creation failed: "+why)
}
