package studylog

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Counts is what became of the lines that were read.
type Counts struct {
	Lines      int64 // of logs, and rows of tables
	Records    int64 // used
	Cut        int64 // records that were cut off within
	Incomplete int64 // records without a field that their type must have, or with an impossible one
	Duplicates int64 // records that were there already
	Homeless   int64 // download metrics of which no experiment is known
	Unknown    map[string]int64
	Files      int64
	CutFiles   []string // compressed files that end too early
}

// stream is a sequence of records that one process, or all of one experiment,
// wrote. A labelled one is of a single experiment.
type stream struct {
	name     string
	file     string
	labelled bool
}

// reader finds the records in files of all the forms that the study has. It holds
// one record at a time, however large a file is.
type reader struct {
	ctx    context.Context
	counts *Counts
	take   func(s stream, e entry) error
}

const (
	longest = 1 << 20 // of a line, a row or a document
	deepest = 3       // archives and compressed files within one another
	kinds   = 20      // names that are listed of what was left out
)

var errTooLong = fmt.Errorf("a record is longer than %d bytes", longest)

// bounded is a file of which one record is read at a time: it ends with an error
// when a record is too long or the context is over.
type bounded struct {
	ctx  context.Context
	in   io.Reader
	left int
}

func (r *reader) bounded(in io.Reader) *bounded { return &bounded{r.ctx, in, longest} }

// next begins another record.
func (b *bounded) next() { b.left = longest }

func (b *bounded) Read(p []byte) (int, error) {
	switch {
	case b.ctx.Err() != nil:
		return 0, context.Cause(b.ctx)
	case b.left <= 0:
		return 0, errTooLong
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// path reads a file, or all files below a directory.
func (r *reader) path(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.open(name)
	}
	return filepath.WalkDir(name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return r.open(p)
	})
}

func (r *reader) open(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.file(filepath.ToSlash(name), f, 0); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// file reads one file, compressed or not. What a compressed one that ends too
// early has until there is used.
func (r *reader) file(name string, f io.Reader, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%s: compressed or archived more than %d times", name, deepest)
	}
	in := bufio.NewReaderSize(f, 1<<16)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		plain := strings.TrimSuffix(name, ".gz")
		if strings.HasSuffix(name, ".tgz") {
			plain = strings.TrimSuffix(name, ".tgz") + ".tar"
		}
		err = r.file(plain, z, depth+1)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			if len(r.counts.CutFiles) < kinds {
				r.counts.CutFiles = append(r.counts.CutFiles, path.Base(name))
			}
			return nil
		}
		return err
	}
	base := path.Base(name)
	switch {
	case strings.HasSuffix(base, ".tar"):
		return r.archive(name, in, depth)
	case strings.HasSuffix(base, ".csv"):
		r.counts.Files++
		return r.table(name, r.bounded(in))
	case strings.HasSuffix(base, typeConfig+".jsonl"):
		r.counts.Files++
		return r.configs(name, r.bounded(in))
	case strings.HasSuffix(base, ".json"):
		r.counts.Files++
		return r.documents(name, in)
	}
	r.counts.Files++
	return r.lines(name, in)
}

func (r *reader) archive(name string, f io.Reader, depth int) error {
	t := tar.NewReader(f)
	for {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case h.Typeflag != tar.TypeReg:
			continue
		}
		if err := r.file(name+"/"+h.Name, t, depth+1); err != nil {
			return err
		}
	}
}

// lines reads a log: lines of any program that contain records, or the JSON
// of a shipper around such lines. What is left of a line that is too long is no
// record.
func (r *reader) lines(name string, in *bufio.Reader) error {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line) <= longest {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > longest {
			r.counts.Lines++
			r.counts.Cut++
		} else if len(line) > 0 {
			if err := r.line(name, string(line)); err != nil {
				return err
			}
		}
		line = line[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && r.ctx.Err() != nil {
			err = context.Cause(r.ctx)
		}
		if err != nil {
			return err
		}
	}
}

// pod is the prefix that kubectl logs --prefix and the study's own dump give.
var pod = regexp.MustCompile(`^\[+(?:pod/)?([^\]/]+)[^\]]*\]+ `)

func (r *reader) line(name, line string) error {
	r.counts.Lines++
	if strings.HasPrefix(line, "{") {
		var d document
		if err := json.Unmarshal([]byte(line), &d); err == nil && d.shipped() {
			return r.document(name, &d)
		} else if err != nil && strings.Contains(line, `"message"`) && strings.Contains(line, marker) {
			r.counts.Cut++
			return nil
		}
	}
	s := stream{name: name, file: name}
	if m := pod.FindStringSubmatch(line); m != nil {
		s.name += " " + m[1]
	}
	return r.message(s, line)
}

func (r *reader) message(s stream, text string) error {
	e, found, err := find(text)
	if found {
		return r.entry(s, e, err)
	}
	return nil
}

func (r *reader) entry(s stream, e entry, err error) error {
	switch {
	case err == nil:
		return r.take(s, e)
	case errors.Is(err, errUnknown):
		if r.counts.Unknown == nil {
			r.counts.Unknown = map[string]int64{}
		}
		if r.counts.Unknown[e.Type] == 0 && len(r.counts.Unknown) >= kinds {
			e.Type = "others"
		}
		r.counts.Unknown[e.Type]++
	case e.Type != "":
		r.counts.Incomplete++
	default:
		r.counts.Cut++
	}
	return nil
}

// document is a line of a log as a shipper stores it: Vector, or Logstash in
// Elasticsearch.
type document struct {
	Message    *string           `json:"message"`
	PodLabels  map[string]string `json:"pod_labels"`
	PodName    string            `json:"pod_name"`
	Kubernetes *document         `json:"kubernetes"`
	Source     *document         `json:"_source"`
}

// Labels of the study's pods.
const (
	labelApp        = "app.kubernetes.io/name"
	labelExperiment = "app.kubernetes.io/instance"
	labelGroup      = "app.kubernetes.io/part-of"
	appName         = "codex-benchmarks"
)

func (d *document) shipped() bool { return d.Message != nil || d.Source != nil && d.Source.shipped() }

func (r *reader) document(name string, d *document) error {
	if d.Source != nil {
		d = d.Source
	}
	if d.Message == nil {
		return nil
	}
	labels, pod := d.PodLabels, d.PodName
	if d.Kubernetes != nil {
		labels, pod = d.Kubernetes.PodLabels, d.Kubernetes.PodName
	}
	s := stream{name: labels[labelGroup] + "/" + labels[labelExperiment], file: name, labelled: labels[labelExperiment] != ""}
	if !s.labelled {
		s.name = name + " " + pod
	}
	return r.message(s, *d.Message)
}

// documents reads a file that is one JSON value: the answer of Elasticsearch, or
// a list of documents. A file of lines is read as such.
func (r *reader) documents(name string, in *bufio.Reader) error {
	head, _ := in.Peek(in.Size()) // a short file is shorter
	if key, _ := listed(json.NewDecoder(bytes.NewReader(head)), func() {}); key == "" {
		return r.lines(name, in)
	}
	b := r.bounded(in)
	dec := json.NewDecoder(b)
	_, err := listed(dec, b.next)
	for err == nil && dec.More() {
		var d document
		b.next()
		err = dec.Decode(&d)
		if other := (*json.UnmarshalTypeError)(nil); errors.As(err, &other) {
			r.counts.Lines, r.counts.Cut, err = r.counts.Lines+1, r.counts.Cut+1, nil
		} else if err == nil {
			r.counts.Lines++
			if err := r.document(name, &d); err != nil {
				return err
			}
		}
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err != nil { // the file ends too early, or a document is too long: what was there is used
		r.counts.Cut++
	}
	return nil
}

// listed goes to the first element of the list of documents, and says under which
// key that is: documents, or hits within hits. Empty: there is no such list.
func listed(dec *json.Decoder, next func()) (key string, err error) {
	depth, within := 0, ""
	for isKey := false; ; {
		next()
		t, err := dec.Token()
		if err != nil {
			return "", err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			list := t == json.Delim('[')
			if depth == 0 && list {
				return "", nil
			}
			if list && (depth == 1 && key == "documents" || depth == 2 && within == "hits" && key == "hits") {
				return key, nil
			}
			if depth == 1 {
				within = key
			}
			depth++
			isKey = !list
			if list { // its values are of no interest
				for dec.More() {
					next()
					if err := skip(dec, next); err != nil {
						return "", err
					}
				}
			}
			continue
		case json.Delim('}'), json.Delim(']'):
			if depth--; depth == 0 {
				return "", nil
			}
			isKey = true
			continue
		}
		if depth == 0 {
			return "", nil
		}
		if isKey {
			key, _ = t.(string)
		}
		isKey = !isKey
	}
}

// skip reads one value, token by token.
func skip(dec *json.Decoder, next func()) error {
	for depth := 0; ; {
		next()
		t, err := dec.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// ofDirectory is the stream of a directory into which the study's program has
// split the records of one experiment.
func ofDirectory(name string) stream {
	return stream{name: path.Dir(name), file: path.Dir(name), labelled: true}
}

func (r *reader) configs(name string, in *bounded) error {
	kind := strings.TrimSuffix(path.Base(name), ".jsonl")
	dec := json.NewDecoder(in)
	for {
		var raw json.RawMessage
		in.next()
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		r.counts.Lines++
		if err != nil {
			r.counts.Cut++
			return nil
		}
		e, err := parse(raw, kind)
		if err := r.entry(ofDirectory(name), e, err); err != nil {
			return err
		}
	}
}

// table reads one of the tables into which the study's program splits records;
// its name is their type.
func (r *reader) table(name string, in *bounded) error {
	kind := strings.TrimSuffix(path.Base(name), ".csv")
	rows := csv.NewReader(in)
	rows.FieldsPerRecord = -1
	rows.ReuseRecord = true
	first, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	head := append([]string{}, first...)
	for {
		in.next()
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		r.counts.Lines++
		var broken *csv.ParseError
		if errors.As(err, &broken) {
			r.counts.Cut++
			continue
		}
		if err != nil {
			return err
		}
		if len(row) != len(head) {
			r.counts.Cut++
			continue
		}
		e, err := fromRow(kind, head, row)
		if err := r.entry(ofDirectory(name), e, err); err != nil {
			return err
		}
	}
}

// fromRow makes a record of a table's row: as JSON, so that there is one reading
// of records.
func fromRow(kind string, head, row []string) (entry, error) {
	fields := map[string]any{}
	for i, key := range head {
		switch {
		case row[i] == "":
		case key == "value" || key == "repetition" || key == "duration":
			fields[key] = json.Number(row[i])
		default:
			fields[key] = row[i]
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return entry{Type: kind}, err // what should be a number is none
	}
	return parse(raw, kind)
}
