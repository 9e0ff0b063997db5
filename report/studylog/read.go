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
	"strconv"
	"strings"
	"time"
)

// Counts counts the lines that were read, and what was done with them.
type Counts struct {
	Lines      int64 // of logs, and rows of tables
	Records    int64 // used
	Duplicates int64
	Unused     int64 // truncated, incomplete or unknown records, and those of an unknown experiment
	Files      int64
}

// stream is a sequence of records written by one process, or by all of one experiment. A labelled
// stream belongs to a single experiment.
type stream struct {
	name     string
	file     string
	labelled bool
}

const (
	longest = 1 << 20 // largest uncompressed size of a line or a record, bytes
	deepest = 3       // largest nesting of archives and compressed files
)

// bounded fails if a record is too long; N is what is left of the limit.
type bounded struct{ io.LimitedReader }

func (b *bounded) Read(p []byte) (int, error) {
	if b.N <= 0 {
		return 0, fmt.Errorf("a record is longer than %d bytes", longest)
	}
	return b.LimitedReader.Read(p)
}

// path reads a file, or all files below a directory.
func (g *gatherer) path(name string) error {
	return filepath.WalkDir(name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p != name && !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || info.IsDir() {
			return err
		}
		if err := g.file(filepath.ToSlash(p), f, 0); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		return nil
	})
}

// file reads one file, compressed or not.
func (g *gatherer) file(name string, f io.Reader, depth int) error {
	switch {
	case g.ctx.Err() != nil:
		return context.Cause(g.ctx)
	case depth > deepest:
		return fmt.Errorf("%s: compressed or archived more than %d times: unpack it", name, deepest)
	}
	in := bufio.NewReaderSize(f, 1<<16)
	base := path.Base(name)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		return g.file(strings.TrimSuffix(strings.Replace(name, ".tgz", ".tar.gz", 1), ".gz"), z, depth+1)
	}
	if strings.HasSuffix(base, ".tar") {
		return g.archive(name, in, depth+1)
	}
	g.counts.Files++
	switch {
	case strings.HasSuffix(base, ".csv"):
		return g.table(name, in)
	case strings.HasSuffix(base, typeConfig+".jsonl"):
		g.configs(name, in)
		return nil
	}
	return g.lines(name, in)
}

func (g *gatherer) archive(name string, f io.Reader, depth int) error {
	for t := tar.NewReader(f); ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case h.Typeflag != tar.TypeReg:
			continue
		}
		if err := g.file(name+"/"+h.Name, t, depth); err != nil {
			return err
		}
	}
}

// lines reads a log: lines of any program that may contain records. Lines that are too long
// contain none.
func (g *gatherer) lines(name string, f io.Reader) error {
	in := bufio.NewReaderSize(f, longest+1) // with the line's end
	for within := false; g.ctx.Err() == nil; {
		line, more, err := in.ReadLine()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case more && !within:
			g.counts.Lines, g.counts.Unused = g.counts.Lines+1, g.counts.Unused+1
		case !more && !within:
			g.line(name, string(line))
		}
		within = more
	}
	return context.Cause(g.ctx)
}

// pod matches the prefix written by kubectl logs --prefix and by the study's own dump.
var pod = regexp.MustCompile(`^\[+(?:pod/)?([^\]/]+)[^\]]*\]+ `)

func (g *gatherer) line(name, line string) {
	g.counts.Lines++
	s := stream{name: name, file: name}
	if m := pod.FindStringSubmatch(line); m != nil {
		s.name += " " + m[1]
	}
	if e, found, usable := find(line); found {
		g.take(s, e, usable)
	}
}

// configs reads the configurations that the study's program splits from the records of an
// experiment, up to a truncated one.
func (g *gatherer) configs(name string, in io.Reader) {
	b := &bounded{io.LimitedReader{R: in, N: longest}}
	for dec := json.NewDecoder(b); dec.More(); b.N = longest {
		var raw json.RawMessage
		g.counts.Lines++
		if dec.Decode(&raw) != nil {
			g.counts.Unused++
			break
		}
		e, usable := parse(raw, strings.TrimSuffix(path.Base(name), ".jsonl"))
		g.take(ofDirectory(name), e, usable)
	}
}

// ofDirectory returns the stream of a directory into which the study's program has split the
// records of one experiment.
func ofDirectory(name string) stream {
	return stream{name: path.Dir(name), file: path.Dir(name), labelled: true}
}

// table reads one of the tables into which the study's program splits records; its name
// is their type.
func (g *gatherer) table(name string, in io.Reader) error {
	kind := strings.TrimSuffix(path.Base(name), ".csv")
	var head []string
	b := &bounded{io.LimitedReader{R: in, N: longest}}
	for rows := csv.NewReader(b); ; b.N = longest {
		if g.ctx.Err() != nil {
			return context.Cause(g.ctx)
		}
		row, err := rows.Read()
		var broken *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &broken):
			g.counts.Lines, g.counts.Unused = g.counts.Lines+1, g.counts.Unused+1
			continue
		case err != nil:
			return err
		case head == nil:
			head = row
			continue
		}
		g.counts.Lines++
		e, usable := fromRow(kind, head, row)
		g.take(ofDirectory(name), e, usable)
	}
}

// fromRow converts a row of a table to a record, via JSON so that all records are parsed in one
// way.
func fromRow(kind string, head, row []string) (e entry, usable bool) {
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
		return e, false // what should be a number is none
	}
	return parse(raw, kind)
}

// marker begins a record within a line of a log.
const marker = ">>"

// Types of records.
const (
	typeRequest  = "request_event"
	typeDownload = "download_metric"
	typeStage    = "experiment_stage"
	typeStatus   = "experiment_status"
	typeConfig   = "_experiment_config_log_entry" // after the name of the system
)

// Names of requests.
const (
	requestSeed  = "genseed"
	requestLeech = "leech"
)

// entry is a record of any type; a type uses some of the fields.
type entry struct {
	Type        string   `json:"entry_type"`
	Name        string   `json:"name"`
	Timestamp   moment   `json:"timestamp"`
	Node        string   `json:"node"`
	Value       *float64 `json:"value"`
	Dataset     string   `json:"dataset_name"`
	Destination string   `json:"destination"`
	RequestID   string   `json:"request_id"`
	Stage       string   `json:"stage"`
	Boundary    string   `json:"type"` // start or end
	Repetition  *int     `json:"repetition"`
	Duration    *float64 `json:"duration"` // seconds
	Error       string   `json:"error"`

	config *config // only in a record of an experiment's configuration
}

// moment is a time by the study's clocks; without a zone it is UTC.
type moment struct{ time.Time }

func (m *moment) UnmarshalJSON(b []byte) error {
	var s string
	err := json.Unmarshal(b, &s)
	if err != nil {
		return err
	}
	s = strings.Replace(s, " ", "T", 1)
	if m.Time, err = time.Parse(time.RFC3339Nano, s); err != nil {
		m.Time, err = time.Parse("2006-01-02T15:04:05.999999999", s)
	}
	return err
}

// config is the configuration of an experiment.
type config struct {
	SetID       string  `json:"experiment_set_id"`
	SeederSets  int     `json:"seeder_sets"`
	Seeders     int     `json:"seeders"`
	FileSize    int64   `json:"file_size"`
	Nodes       nodeSet `json:"nodes"`
	Repetitions int     `json:"repetitions"` // per seeder set
	Unit        int64   `json:"download_metric_unit_bytes"`
	System      string  `json:"-"`
}

// trials is the number of planned trials of an experiment.
func (c *config) trials() int { return c.SeederSets * c.Repetitions }

// nodeSet is a list of nodes or a template from which nodes are generated.
type nodeSet struct {
	Size  int
	Names []string
}

func (n *nodeSet) UnmarshalJSON(b []byte) error {
	var set struct {
		Size  int `json:"network_size"`
		Nodes []struct {
			Name string `json:"name"`
		} `json:"nodes"`
	}
	if json.Unmarshal(b, &set.Nodes) == nil {
		set.Size = len(set.Nodes)
	} else if err := json.Unmarshal(b, &set); err != nil {
		return err
	}
	n.Size = set.Size
	for _, node := range set.Nodes {
		n.Names = append(n.Names, node.Name)
	}
	return nil
}

// find looks for a record in a line. A record is unusable if it is cut off, of an unknown type, or
// incomplete.
func find(line string) (e entry, found, usable bool) {
	for {
		_, rest, ok := strings.Cut(line, marker)
		if !ok {
			return entry{}, found, false
		}
		line = rest
		// Anything after the record was added by the program that shipped the log.
		var raw json.RawMessage
		if err := json.NewDecoder(strings.NewReader(rest)).Decode(&raw); err == nil && raw[0] == '{' {
			e, usable = parse(raw, "")
			return e, true, usable
		}
		// The marker of a record may come after others like it.
		found = found || strings.HasPrefix(strings.TrimSpace(rest), "{")
	}
}

// parse parses a record. kind is its type if the record itself does not contain it.
func parse(raw []byte, kind string) (e entry, usable bool) {
	var tag struct {
		Type string `json:"entry_type"`
	}
	if json.Unmarshal(raw, &tag) != nil {
		return e, false
	}
	if tag.Type != "" {
		kind = tag.Type
	}
	system, isConfig := strings.CutSuffix(kind, typeConfig)
	switch {
	case isConfig:
		e.config = &config{System: system, Unit: 1, SeederSets: 1, SetID: "unnamed"}
		return e, json.Unmarshal(raw, e.config) == nil && e.config.possible()
	case kind == typeRequest, kind == typeDownload, kind == typeStage, kind == typeStatus:
		err := json.Unmarshal(raw, &e)
		e.Type = kind
		usable = err == nil && e.tidy()
	}
	return e, usable
}

func (c *config) possible() bool {
	return c.System != "" && c.FileSize > 0 && c.Nodes.Size >= 2 && c.Seeders >= 1 && c.Seeders < c.Nodes.Size &&
		c.Repetitions >= 1 && c.SeederSets >= 1 && c.Unit >= 1
}

// tidy normalises what the study's programs write in different forms, and reports whether the
// record is complete.
func (e *entry) tidy() bool {
	e.Boundary = strings.TrimPrefix(e.Boundary, "EventBoundary.")
	// Codex's agents give their names in the quotes of JSON.
	e.Destination = strings.Trim(e.Destination, `"`)
	e.Node = strings.Trim(e.Node, `"`)
	bounded := e.Boundary == "start" || e.Boundary == "end"
	switch {
	case e.Timestamp.IsZero():
		return false
	case e.Type == typeRequest:
		return bounded && e.Destination != ""
	case e.Type == typeStage:
		return bounded
	case e.Type == typeDownload:
		return e.Node != "" && e.Dataset != "" && e.Value != nil && *e.Value >= 0
	}
	return e.Repetition != nil && e.Duration != nil
}

var datasetName = regexp.MustCompile(`dataset-(\d+)-(\d+)`)

// datasetOf finds the name of a data set in a text such as a request's ID, with its seeder set
// and repetition; otherwise it returns the text itself.
func datasetOf(text string) (name string, set, repetition int) {
	m := datasetName.FindStringSubmatch(text)
	if m == nil {
		return text, 0, 0
	}
	set, _ = strconv.Atoi(m[1]) // digits; too many are as good as any other number
	repetition, _ = strconv.Atoi(m[2])
	return m[0], set, repetition
}
