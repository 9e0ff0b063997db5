package siasim

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// renterdRoutes are those that the adapter uses. There is one bucket, and packing
// is off.
func (s *Sim) renterdRoutes() http.Handler {
	mux := http.NewServeMux()
	for path, report := range map[string]func() any{
		"bus/state":           func() any { return object{"version": "v2.9.1", "commit": "?", "network": "simulated"} },
		"bus/consensus/state": func() any { return object{"synced": true, "blockHeight": s.height()} },
		"bus/wallet": func() any {
			return object{"spendable": s.wallet.String(), "unconfirmed": "0", "immature": "0"}
		},
		"bus/syncer/peers": func() any { return slices.Repeat([]string{"203.0.113.1:9981"}, 8) },
		"bus/contracts":    s.busContracts,
		"bus/buckets":      func() any { return []object{{"name": "default"}} },
		"bus/settings/upload": func() any {
			return object{"packing": object{"enabled": false}, "redundancy": object{"minShards": s.conf.Data,
				"totalShards": s.conf.Data + s.conf.Parity}}
		},
		"bus/slabbuffers":   func() any { return []object{} },
		"bus/stats/objects": s.objectStats,
	} {
		mux.HandleFunc("GET /api/"+path, s.report(report))
	}
	mux.HandleFunc("POST /api/bus/hosts", s.report(s.busHosts))
	mux.HandleFunc("GET /api/bus/objects/{path...}", s.listObjects)
	mux.HandleFunc("GET /api/bus/object/{path...}", func(w http.ResponseWriter, r *http.Request) {
		defer s.lock()()
		if f := s.renterdFind(w, r); f != nil {
			answer(w, s.busObject(f, true))
		}
	})
	mux.HandleFunc("GET /api/worker/object/{path...}", s.getObject) // and HEAD
	mux.HandleFunc("PUT /api/worker/object/{path...}", s.putObject)
	mux.HandleFunc("DELETE /api/worker/object/{path...}", func(w http.ResponseWriter, r *http.Request) {
		defer s.lock()()
		if f := s.renterdFind(w, r); f != nil {
			s.remove(f)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != Password {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *Sim) renterdFind(w http.ResponseWriter, r *http.Request) *file {
	f := s.files[r.PathValue("path")]
	if f == nil {
		http.Error(w, "object not found", http.StatusNotFound)
	}
	return f
}

// busContracts are all; null before the first. Storage is paid with the upload,
// downloads from an account with the host.
func (s *Sim) busContracts() any {
	var all []object
	for _, c := range s.contracts {
		one := object{
			"id": c.id, "size": c.size, "state": "active", "usability": "good", "contractPrice": c.fees.String(),
			"initialRenterFunds": c.initial.String(),
			"spending": object{"uploads": new(big.Int).Add(c.upload, c.storage).String(),
				"fundAccount": c.download.String(), "sectorRoots": "0", "deletions": "0"},
		}
		if c.state != active {
			one["state"], one["usability"], one["archivalReason"] = "complete", "bad", "renewed"
		}
		all = append(all, one)
	}
	return all
}

func (s *Sim) busHosts() any {
	return slices.Repeat([]object{{"v2Settings": object{"prices": object{
		"contractPrice": SC(contractPrice).String(), "storagePrice": strconv.Itoa(storagePrice),
		"ingressPrice": strconv.Itoa(uploadPrice), "egressPrice": strconv.Itoa(downloadPrice),
	}}}}, s.known())
}

func (s *Sim) objectStats() any {
	size, sectors := int64(0), int64(0)
	for _, f := range s.files {
		size += f.size
		sectors += int64(f.placed)
	}
	return object{"numObjects": len(s.files), "totalObjectsSize": size, "totalSectorsSize": sectors * s.conf.Sector,
		"minHealth": 1}
}

// busObject is the account of an object; a list leaves out the slabs.
func (s *Sim) busObject(f *file, slabs bool) object {
	o := object{"key": "/" + f.path, "size": f.size, "health": 1}
	if !slabs {
		return o
	}
	all := []object{}
	whole, left, placed := s.conf.Sector*int64(f.data), f.size, f.placed
	for ; left > 0; left -= whole {
		shards := []object{}
		for range min(placed, f.full) {
			shards = append(shards, object{"contracts": object{"ed25519:host": []string{"fcid:contract"}}})
		}
		placed -= len(shards)
		all = append(all, object{"length": min(left, whole), "slab": object{"minShards": f.data, "shards": shards}})
	}
	o["slabs"] = all
	return o
}

func (s *Sim) listObjects(w http.ResponseWriter, r *http.Request) {
	defer s.lock()()
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	var page []object // null when there are none
	for _, path := range slices.Sorted(maps.Keys(s.files)) {
		if !strings.HasPrefix(path, r.PathValue("path")) || "/"+path <= q.Get("marker") {
			continue
		}
		if limit > 0 && len(page) == limit {
			answer(w, object{"hasMore": true, "nextMarker": page[limit-1]["key"], "objects": page})
			return
		}
		page = append(page, s.busObject(s.files[path], false))
	}
	answer(w, object{"hasMore": false, "nextMarker": "", "objects": page})
}

// putObject stores an object, and answers when all of it is on hosts.
func (s *Sim) putObject(w http.ResponseWriter, r *http.Request) {
	unlock := s.lock()
	good, total := s.good(), s.conf.Data+s.conf.Parity
	unlock()
	if good < total {
		http.Error(w, fmt.Sprintf("couldn't upload object: %d < %d: not enough hosts to support requested upload "+
			"redundancy", good, total), http.StatusInternalServerError)
		return
	}
	f := s.receive(r.PathValue("path"), r.Body)
	f.accept = f.chunks * f.full
	if f.incomplete { // it leaves nothing behind
		http.Error(w, "couldn't upload object: unexpected EOF", http.StatusInternalServerError)
		return
	}
	unlock = s.lock()
	if old := s.files[f.path]; old != nil { // without a word
		s.remove(old)
	}
	s.add(f)
	unlock()
	if !s.accepted(r.Context(), f) {
		unlock = s.lock()
		if s.files[f.path] == f {
			s.remove(f)
		}
		unlock()
		http.Error(w, "couldn't upload object: context canceled", http.StatusInternalServerError)
	}
}

// getObject serves an object or a part of it. Of ranges only bytes=a-b within
// the object will do.
func (s *Sim) getObject(w http.ResponseWriter, r *http.Request) {
	unlock := s.lock()
	f := s.renterdFind(w, r)
	unlock()
	if f == nil {
		return
	}
	from, to, status := int64(0), f.size-1, http.StatusOK
	if span := r.Header.Get("Range"); span != "" {
		if n, _ := fmt.Sscanf(span, "bytes=%d-%d", &from, &to); n != 2 || from > to || to >= f.size {
			http.Error(w, "couldn't fetch object: invalid range", http.StatusBadRequest)
			return
		}
		status = http.StatusPartialContent
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, f.size))
	}
	w.Header().Set("Etag", strconv.Quote(cmp.Or(f.sum, "none")))
	if !s.send(w, f, from, to-from+1, status) {
		http.Error(w, "couldn't fetch object: not enough hosts to download", http.StatusInternalServerError)
	}
}
