package siasim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// bucketMark begins the paths of objects that renterd has; siad lists none of
// them.
const bucketMark = "\x00"

func objectPath(bucket, key string) string { return bucketMark + bucket + "/" + key }

const renterdType = "application/json"

func (s *Sim) renterdTable() []route {
	state := func(v func() any) func(http.ResponseWriter, *http.Request, string) {
		return func(w http.ResponseWriter, _ *http.Request, _ string) { s.tell(w, v) }
	}
	return []route{
		{"GET", "/api/bus/state", true, state(s.busState)},
		{"GET", "/api/bus/consensus/state", true, state(s.consensusState)},
		{"GET", "/api/bus/wallet", true, state(s.busWallet)},
		{"GET", "/api/bus/syncer/peers", true, state(s.busPeers)},
		{"GET", "/api/bus/contracts", true, s.listContracts},
		{"POST", "/api/bus/hosts", true, s.busHosts},
		{"GET", "/api/bus/buckets", true, state(s.buckets)},
		{"POST", "/api/bus/buckets", true, s.makeBucket},
		{"GET", "/api/bus/settings/upload", true, state(func() any { return s.renterd.settings })},
		{"PUT", "/api/bus/settings/upload", true, s.setUpload},
		{"GET", "/api/bus/slabbuffers", true, state(s.slabBuffers)},
		{"GET", "/api/bus/stats/objects", true, s.objectStats},
		{"POST", "/api/bus/objects/rename", true, s.renameObject},
		{"GET", "/api/bus/objects/", true, s.listObjects},
		{"GET", "/api/bus/object/", true, s.object},
		{"POST", "/api/worker/objects/remove", true, s.removeObjects},
		{"GET", "/api/worker/object/", true, s.getObject},
		{"HEAD", "/api/worker/object/", true, s.getObject},
		{"PUT", "/api/worker/object/", true, s.putObject},
		{"DELETE", "/api/worker/object/", true, s.deleteObject},
	}
}

func (s *Sim) listContracts(w http.ResponseWriter, r *http.Request, _ string) {
	everything := r.URL.Query().Get("filtermode") == "all"
	s.tell(w, func() any { return s.busContracts(everything) })
}

func (s *Sim) renterdRoutes() http.Handler {
	table := s.renterdTable()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); strings.HasPrefix(r.URL.Path, "/api/") && password != s.conf.Password {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		if one, rest := find(w, r, table, func() { http.Error(w, "404 page not found", http.StatusNotFound) }); one != nil {
			one.serve(w, r, rest)
		}
	})
}

// tell answers with a state; renterd sends some empty lists as null.
func (s *Sim) tell(w http.ResponseWriter, state func() any) {
	s.mu.Lock()
	s.advance()
	v := state()
	s.mu.Unlock()
	answerJSON(w, renterdType, v)
}

func (s *Sim) makeBucket(w http.ResponseWriter, r *http.Request, _ string) {
	var ask struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, "couldn't decode request type (api.BucketCreateRequest): "+err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	if s.renterd.has(ask.Name) {
		http.Error(w, "bucket already exists", http.StatusConflict)
		return
	}
	s.renterd.buckets = append(s.renterd.buckets, bucketJSON{Created: s.epoch.Add(s.now).UTC(), Name: ask.Name})
}

func (s *Sim) setUpload(w http.ResponseWriter, r *http.Request, _ string) {
	var set uploadSettings
	if err := json.NewDecoder(r.Body).Decode(&set); err != nil {
		http.Error(w, "couldn't decode request type (*api.UploadSettings): "+err.Error(), http.StatusBadRequest)
		return
	}
	if set.Redundancy.Total < set.Redundancy.Min {
		http.Error(w, "couldn't update upload settings, error: invalid redundancy settings: TotalShards must be at least MinShards", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renterd.settings = set
}

// putObject stores an object. With packing its end waits in a slab buffer, and
// leaves when that is full.
func (s *Sim) putObject(w http.ResponseWriter, r *http.Request, key string) {
	q := r.URL.Query()
	bucket := q.Get("bucket")
	if bucket == "" {
		http.Error(w, "'bucket' parameter is required", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.advance()
	settings, has, good := s.renterd.settings, s.renterd.has(bucket), len(s.good(s.now))
	if !s.solvent(s.now) {
		good = 0
	}
	s.mu.Unlock()
	minimum, total := settings.Redundancy.Min, settings.Redundancy.Total
	if text := q.Get("minshards"); text != "" {
		minimum, _ = strconv.Atoi(text)
	}
	if text := q.Get("totalshards"); text != "" {
		total, _ = strconv.Atoi(text)
	}
	switch {
	case !has:
		http.Error(w, fmt.Sprintf("bucket '%s' not found; failed to fetch bucket: bucket not found", bucket), http.StatusNotFound)
		return
	case minimum < 1 || total < minimum:
		http.Error(w, "invalid redundancy settings: TotalShards must be at least MinShards", http.StatusBadRequest)
		return
	case good < total:
		http.Error(w, fmt.Sprintf("couldn't upload object: couldn't upload object: %d < %d: not enough hosts to support requested upload redundancy", good, total), http.StatusInternalServerError)
		return
	}
	got := receive(r.Body, s.conf.KeepEach)
	if got.err != nil { // it leaves nothing behind
		http.Error(w, "couldn't upload object: "+got.err.Error(), http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	s.advance()
	f, wait := s.putSlabs(objectPath(bucket, key), got, minimum, total, settings.Packing.Enabled)
	f.mime = cmp.Or(q.Get("mimetype"), sniff(got))
	s.mu.Unlock()
	for _, slab := range wait {
		if !s.placed(r.Context(), slab) {
			http.Error(w, "couldn't upload object: context canceled", http.StatusInternalServerError)
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	if old, taken := s.files[f.path]; taken { // without a word
		s.remove(old)
	}
	s.files[f.path] = f
	f.made, f.changed = s.now, s.now
	w.Header().Set("Etag", strconv.Quote(f.md5))
}

func sniff(got received) string {
	if len(got.kept) > 0 {
		return http.DetectContentType(got.kept)
	}
	if got.size == 0 {
		return "text/plain"
	}
	return "application/octet-stream"
}

// find is an object that a request names. Under no lock.
func (s *Sim) find(w http.ResponseWriter, r *http.Request, key, missing string) *file {
	bucket := r.URL.Query().Get("bucket")
	if bucket == "" {
		http.Error(w, "'bucket' parameter is required", http.StatusBadRequest)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	f := s.files[objectPath(bucket, key)]
	if f == nil {
		http.Error(w, missing, http.StatusNotFound)
	}
	return f
}

func (s *Sim) object(w http.ResponseWriter, r *http.Request, key string) {
	if f := s.find(w, r, key, "object not found"); f != nil {
		s.tell(w, func() any { return s.objectJSON(f, true) })
	}
}

// getObject serves an object or a part of it. Of ranges only bytes=a-b within
// the object will do.
func (s *Sim) getObject(w http.ResponseWriter, r *http.Request, key string) {
	f := s.find(w, r, key, "couldn't fetch object: couldn't fetch object: object not found")
	if f == nil {
		return
	}
	off, length, status := int64(0), f.size, http.StatusOK
	if text := r.Header.Get("Range"); text != "" {
		span, ok := strings.CutPrefix(text, "bytes=")
		if strings.Contains(span, ",") {
			http.Error(w, "multipart ranges are not supported", http.StatusBadRequest)
			return
		}
		from, to, ok2 := strings.Cut(span, "-")
		if !ok || !ok2 {
			http.Error(w, "invalid range", http.StatusBadRequest)
			return
		}
		a, err1 := strconv.ParseInt(from, 10, 64)
		b, err2 := strconv.ParseInt(to, 10, 64)
		if err1 != nil || err2 != nil || a > b || b >= f.size {
			http.Error(w, "couldn't fetch object: invalid range", http.StatusBadRequest)
			return
		}
		off, length, status = a, b-a+1, http.StatusPartialContent
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", a, b, f.size))
	}
	h := w.Header()
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Type", f.mime)
	h.Set("Etag", strconv.Quote(f.md5))
	h.Set("Last-Modified", s.epoch.Add(f.changed).UTC().Format(http.TimeFormat))
	if r.Method == http.MethodHead {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
		w.WriteHeader(status)
		return
	}
	s.mu.Lock()
	content, kept := s.content(f)
	ok := kept && f.healthy() && s.payDownload(length)
	s.mu.Unlock()
	if !ok {
		for _, name := range []string{"Accept-Ranges", "Content-Range", "Etag", "Last-Modified"} {
			h.Del(name)
		}
		http.Error(w, "couldn't fetch object: not enough hosts to download", http.StatusInternalServerError)
		return
	}
	s.send(w, content, off, length, status)
}

func (s *Sim) deleteObject(w http.ResponseWriter, r *http.Request, key string) {
	f := s.find(w, r, key, "object not found: key: /"+key)
	if f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[f.path] == f {
		s.remove(f)
	}
}

// removeObjects removes those whose keys, which begin with a slash, begin so.
func (s *Sim) removeObjects(w http.ResponseWriter, r *http.Request, _ string) {
	var ask struct{ Bucket, Prefix string }
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	gone := 0
	for _, o := range s.objects(ask.Bucket) {
		if strings.HasPrefix(o.key, ask.Prefix) {
			s.remove(o.file)
			gone++
		}
	}
	if gone == 0 {
		http.Error(w, "couldn't remove objects: failed to remove objects: object not found: prefix: "+ask.Prefix, http.StatusInternalServerError)
	}
}

func (s *Sim) renameObject(w http.ResponseWriter, r *http.Request, _ string) {
	var ask struct {
		Bucket, From, To string
		Force            bool
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	from, slash := strings.CutPrefix(ask.From, "/")
	f := s.files[objectPath(ask.Bucket, from)]
	to := objectPath(ask.Bucket, strings.TrimPrefix(ask.To, "/"))
	old, taken := s.files[to]
	switch {
	case !slash || f == nil:
		http.Error(w, "couldn't rename object: object not found: key "+ask.From, http.StatusInternalServerError)
	case taken && !ask.Force:
		http.Error(w, "couldn't rename object: object already exists", http.StatusInternalServerError)
	default:
		if taken {
			s.remove(old)
		}
		delete(s.files, f.path)
		f.path = to
		s.files[to] = f
	}
}

// listed is an object with its key.
type listed struct {
	bucket, key string // the key begins with a slash
	file        *file
}

// objects are those of a bucket, or of all, by key.
func (s *Sim) objects(bucket string) []listed {
	var all []listed
	for path, f := range s.files {
		rest, ours := strings.CutPrefix(path, bucketMark)
		in, key, _ := strings.Cut(rest, "/")
		if ours && (bucket == "" || bucket == in) {
			all = append(all, listed{in, "/" + key, f})
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return cmp.Compare(a.key, b.key) })
	return all
}

// listObjects lists those of a bucket whose keys begin so. A bucket that is not
// there has none.
func (s *Sim) listObjects(w http.ResponseWriter, r *http.Request, prefix string) {
	q := r.URL.Query()
	by := cmp.Or(q.Get("sortby"), "name")
	if !slices.Contains([]string{"name", "size", "health"}, by) {
		http.Error(w, "failed to query objects: failed to apply sorting: invalid sortBy: "+by, http.StatusInternalServerError)
		return
	}
	s.tell(w, func() any {
		var answer struct {
			More    bool         `json:"hasMore"`
			Next    string       `json:"nextMarker"`
			Objects []objectJSON `json:"objects"` // null when there are none
		}
		all := s.objects(q.Get("bucket"))
		if by == "size" {
			slices.SortStableFunc(all, func(a, b listed) int { return cmp.Compare(a.file.size, b.file.size) })
		}
		if q.Get("sortdir") == "desc" {
			slices.Reverse(all)
		}
		limit, _ := strconv.Atoi(q.Get("limit"))
		for _, o := range all {
			if !strings.HasPrefix(o.key, "/"+prefix) || !strings.Contains(o.key, q.Get("substring")) || by == "name" && o.key <= q.Get("marker") {
				continue
			}
			if limit > 0 && len(answer.Objects) == limit {
				answer.More, answer.Next = true, answer.Objects[limit-1].Key
				break
			}
			one := s.objectJSON(o.file, false)
			if delimiter := q.Get("delimiter"); delimiter != "" {
				if head, _, folder := strings.Cut(o.key[1+len(prefix):], delimiter); folder {
					key := "/" + prefix + head + delimiter
					if n := len(answer.Objects); n > 0 && answer.Objects[n-1].Key == key {
						answer.Objects[n-1].Size += one.Size
						continue
					}
					one = objectJSON{Bucket: o.bucket, Health: 1, Modified: one.Modified, Key: key, Size: one.Size}
				}
			}
			answer.Objects = append(answer.Objects, one)
		}
		return answer
	})
}

func (s *Sim) busHosts(w http.ResponseWriter, r *http.Request, _ string) {
	var ask struct {
		Offset, Limit int
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil && err != io.EOF {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.tell(w, func() any {
		all := []any{}
		for i, h := range s.hosts {
			if !h.dropped && i >= ask.Offset && (ask.Limit <= 0 || len(all) < ask.Limit) {
				all = append(all, s.busHost(h))
			}
		}
		return all
	})
}

func (s *Sim) objectStats(w http.ResponseWriter, r *http.Request, _ string) {
	bucket := r.URL.Query().Get("bucket")
	s.tell(w, func() any {
		a := statsJSON{Health: 1}
		counted := map[*file]bool{}
		for _, o := range s.objects(bucket) {
			a.Objects++
			a.Bytes += o.file.size
			for _, slab := range o.file.slabs {
				if !counted[slab.of] {
					counted[slab.of] = true
					a.Sectors += int64(slab.of.placed-slab.of.lost) * s.conf.Sector
					a.Health = min(a.Health, slab.of.slabHealth())
				}
			}
		}
		for _, f := range s.renterd.slabs {
			a.Uploaded += int64(f.placed) * s.conf.Sector // also what was deleted
		}
		return a
	})
}
