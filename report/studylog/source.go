package studylog

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
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

// reader finds the records in files of all the forms that the study has.
type reader struct {
	counts *Counts
	take   func(s stream, e entry)
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
	if err := r.file(filepath.ToSlash(name), f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// file reads one file, compressed or not. What a compressed one that ends too
// early has until there is used.
func (r *reader) file(name string, f io.Reader) error {
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
		err = r.file(plain, z)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			r.counts.CutFiles = append(r.counts.CutFiles, path.Base(name))
			return nil
		}
		return err
	}
	base := path.Base(name)
	switch {
	case strings.HasSuffix(base, ".tar"):
		return r.archive(name, in)
	case strings.HasSuffix(base, ".csv"):
		r.counts.Files++
		return r.table(name, in)
	case strings.HasSuffix(base, typeConfig+".jsonl"):
		r.counts.Files++
		return r.configs(name, in)
	case strings.HasSuffix(base, ".json"):
		r.counts.Files++
		return r.documents(name, in)
	}
	r.counts.Files++
	return r.lines(name, in)
}

func (r *reader) archive(name string, f io.Reader) error {
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
		if err := r.file(name+"/"+h.Name, t); err != nil {
			return err
		}
	}
}

// lines reads a log: lines of any program in which records stand, or the JSON
// of a shipper around such lines.
func (r *reader) lines(name string, in *bufio.Reader) error {
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			r.line(name, line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// pod is the prefix that kubectl logs --prefix and the study's own dump give.
var pod = regexp.MustCompile(`^\[+(?:pod/)?([^\]/]+)[^\]]*\]+ `)

func (r *reader) line(name, line string) {
	r.counts.Lines++
	if strings.HasPrefix(line, "{") {
		var d document
		if err := json.Unmarshal([]byte(line), &d); err == nil && d.shipped() {
			r.document(name, &d)
			return
		} else if err != nil && strings.Contains(line, `"message"`) && strings.Contains(line, marker) {
			r.counts.Cut++
			return
		}
	}
	s := stream{name: name, file: name}
	if m := pod.FindStringSubmatch(line); m != nil {
		s.name += " " + m[1]
	}
	r.message(s, line)
}

func (r *reader) message(s stream, text string) {
	e, found, err := find(text)
	if found {
		r.entry(s, e, err)
	}
}

func (r *reader) entry(s stream, e entry, err error) {
	switch {
	case err == nil:
		r.take(s, e)
	case errors.Is(err, errUnknown):
		if r.counts.Unknown == nil {
			r.counts.Unknown = map[string]int64{}
		}
		r.counts.Unknown[e.Type]++
	case e.Type != "":
		r.counts.Incomplete++
	default:
		r.counts.Cut++
	}
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

func (r *reader) document(name string, d *document) {
	if d.Source != nil {
		d = d.Source
	}
	if d.Message == nil {
		return
	}
	labels, pod := d.PodLabels, d.PodName
	if d.Kubernetes != nil {
		labels, pod = d.Kubernetes.PodLabels, d.Kubernetes.PodName
	}
	s := stream{name: labels[labelGroup] + "/" + labels[labelExperiment], file: name, labelled: labels[labelExperiment] != ""}
	if !s.labelled {
		s.name = name + " " + pod
	}
	r.message(s, *d.Message)
}

// documents reads a file that is one JSON value: the answer of Elasticsearch, or
// a list of documents. A file of lines is read as such.
func (r *reader) documents(name string, in *bufio.Reader) error {
	all, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var answer struct {
		Documents []document `json:"documents"`
		Hits      struct {
			Hits []document `json:"hits"`
		} `json:"hits"`
	}
	if json.Unmarshal(all, &answer) != nil || len(answer.Documents)+len(answer.Hits.Hits) == 0 {
		return r.lines(name, bufio.NewReader(bytes.NewReader(all)))
	}
	for _, list := range [][]document{answer.Documents, answer.Hits.Hits} {
		for i := range list {
			r.counts.Lines++
			r.document(name, &list[i])
		}
	}
	return nil
}

// ofDirectory is the stream of a directory into which the study's program has
// split the records of one experiment.
func ofDirectory(name string) stream {
	return stream{name: path.Dir(name), file: path.Dir(name), labelled: true}
}

func (r *reader) configs(name string, in *bufio.Reader) error {
	kind := strings.TrimSuffix(path.Base(name), ".jsonl")
	dec := json.NewDecoder(in)
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		r.counts.Lines++
		if err != nil {
			r.counts.Cut++
			return nil
		}
		e, err := parse(raw, kind)
		r.entry(ofDirectory(name), e, err)
	}
}

// table reads one of the tables into which the study's program splits records;
// its name is their type.
func (r *reader) table(name string, in io.Reader) error {
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
		r.entry(ofDirectory(name), e, err)
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
