package studylog

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

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
