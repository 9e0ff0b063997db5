package studylog

import (
	"encoding/json"
	"errors"
	"fmt"
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
	Name        string  `json:"name"`
	Timestamp   moment  `json:"timestamp"`
	Node        string  `json:"node,omitempty"`
	Value       *number `json:"value,omitempty"`
	Dataset     string  `json:"dataset_name,omitempty"`
	Destination string  `json:"destination,omitempty"`
	RequestID   string  `json:"request_id,omitempty"`
	Stage       string  `json:"stage,omitempty"`
	Boundary    string  `json:"type,omitempty"` // start or end
	Repetition  *int    `json:"repetition,omitempty"`
	Duration    *number `json:"duration,omitempty"` // seconds
	Error       *string `json:"error,omitempty"`
	Type        string  `json:"entry_type"`

	size   int     // of the record, in bytes
	config *config // of a record of an experiment's configuration
}

// number is written without an exponent, as the study writes it.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'f', -1, 64), nil
}

// moment is a time of the study's clocks: microseconds, with a zone. One without
// a zone is UTC.
type moment struct{ time.Time }

const momentLayout = "2006-01-02T15:04:05.000000Z07:00"

func (m moment) MarshalJSON() ([]byte, error) {
	return []byte(`"` + m.UTC().Format(momentLayout) + `"`), nil
}

func (m *moment) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	return m.parse(s)
}

func (m *moment) parse(s string) (err error) {
	s = strings.Replace(s, " ", "T", 1)
	if m.Time, err = time.Parse(time.RFC3339Nano, s); err != nil {
		m.Time, err = time.Parse("2006-01-02T15:04:05.999999999", s)
	}
	return err
}

// config is what an experiment was to be.
type config struct {
	SetID       string  `json:"experiment_set_id"`
	SeederSets  int     `json:"seeder_sets"`
	Seeders     int     `json:"seeders"`
	FileSize    int64   `json:"file_size"`
	Nodes       nodeSet `json:"nodes"`
	Repetitions int     `json:"repetitions"` // of each seeder set
	Unit        int64   `json:"download_metric_unit_bytes"`
	System      string  `json:"-"`
}

// nodeSet is either a list of nodes or a template with the nodes made from it.
type nodeSet struct {
	Size  int
	Names []string
}

func (n *nodeSet) UnmarshalJSON(b []byte) error {
	type node struct {
		Name string `json:"name"`
	}
	var list []node
	if json.Unmarshal(b, &list) == nil {
		n.Size = len(list)
	} else {
		var set struct {
			Size  int    `json:"network_size"`
			Nodes []node `json:"nodes"`
		}
		if err := json.Unmarshal(b, &set); err != nil {
			return err
		}
		n.Size, list = set.Size, set.Nodes
	}
	for _, node := range list {
		n.Names = append(n.Names, node.Name)
	}
	return nil
}

// errUnknown is a record of a type that nothing is known of.
var errUnknown = errors.New("unknown type of record")

// find looks for a record in a line; false: there is none. An error is of a
// record that cannot be used: cut off, of an unknown type, or incomplete.
func find(line string) (e entry, found bool, err error) {
	for {
		_, rest, ok := strings.Cut(line, marker)
		if !ok {
			return entry{}, found, err
		}
		line = rest
		// What comes after the record is the business of who shipped the log.
		var raw json.RawMessage
		if derr := json.NewDecoder(strings.NewReader(rest)).Decode(&raw); derr != nil || raw[0] != '{' {
			if strings.HasPrefix(strings.TrimSpace(rest), "{") {
				found, err = true, fmt.Errorf("cut off: %w", derr)
			}
			continue // the marker of a record may come after others like it
		}
		e, err = parse(raw, "")
		return e, true, err
	}
}

// parse reads a record. kind is its type where the record itself does not say.
func parse(raw []byte, kind string) (entry, error) {
	var tag struct {
		Type string `json:"entry_type"`
	}
	if err := json.Unmarshal(raw, &tag); err != nil {
		return entry{}, err
	}
	if tag.Type == "" {
		tag.Type = kind
	}
	system, isConfig := strings.CutSuffix(tag.Type, typeConfig)
	switch {
	case isConfig:
		c := &config{System: system, Unit: 1, SeederSets: 1, SetID: "unnamed"}
		if err := json.Unmarshal(raw, c); err != nil {
			return entry{Type: tag.Type}, err
		}
		e := entry{Type: tag.Type, size: len(raw), config: c}
		return e, c.check()
	case tag.Type == typeRequest, tag.Type == typeDownload, tag.Type == typeStage, tag.Type == typeStatus:
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return entry{Type: tag.Type}, err
		}
		e.Type, e.size = tag.Type, len(raw)
		return e, e.tidy()
	}
	return entry{Type: tag.Type}, fmt.Errorf("%w %q", errUnknown, tag.Type)
}

func (c *config) check() error {
	switch {
	case c.System == "", c.FileSize <= 0, c.Nodes.Size < 2, c.Seeders < 1, c.Seeders >= c.Nodes.Size, c.Repetitions < 1, c.SeederSets < 1, c.Unit < 1:
		return fmt.Errorf("impossible configuration of %q: %d bytes, %d nodes, %d seeders, %d × %d repetitions, unit %d", c.SetID, c.FileSize, c.Nodes.Size, c.Seeders, c.SeederSets, c.Repetitions, c.Unit)
	}
	return nil
}

// tidy brings to one form what the study's programs write in several.
func (e *entry) tidy() error {
	e.Boundary = strings.TrimPrefix(e.Boundary, "EventBoundary.")
	// Codex's agents give their names in the quotes of JSON.
	e.Destination = strings.Trim(e.Destination, `"`)
	e.Node = strings.Trim(e.Node, `"`)
	missing := ""
	switch {
	case e.Timestamp.IsZero():
		missing = "timestamp"
	case (e.Type == typeRequest || e.Type == typeStage) && e.Boundary != "start" && e.Boundary != "end":
		missing = "type"
	case e.Type == typeRequest && e.Destination == "":
		missing = "destination"
	case e.Type == typeDownload && (e.Node == "" || e.Dataset == "" || e.Value == nil || *e.Value < 0):
		missing = "node, dataset or value"
	case e.Type == typeStatus && (e.Repetition == nil || e.Duration == nil):
		missing = "repetition or duration"
	}
	if missing != "" {
		return fmt.Errorf("%s without %s", e.Type, missing)
	}
	return nil
}

var datasetName = regexp.MustCompile(`dataset-(\d+)-(\d+)`)

// datasetOf finds the name of a data set in a text such as a request's ID; the
// text itself when there is none.
func datasetOf(text string) string {
	if m := datasetName.FindString(text); m != "" {
		return m
	}
	return text
}

// setAndRepetition are those of a data set's name.
func setAndRepetition(dataset string) (set, repetition int, ok bool) {
	m := datasetName.FindStringSubmatch(dataset)
	if m == nil {
		return 0, 0, false
	}
	set, err1 := strconv.Atoi(m[1])
	repetition, err2 := strconv.Atoi(m[2])
	return set, repetition, err1 == nil && err2 == nil
}
