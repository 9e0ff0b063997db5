package experiment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Marshal returns the plan as it is stored: JSON with the fields in the order of their types,
// sorted maps, and indentation for readers. The same plan always gives the same bytes.
func (p *Plan) Marshal() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // conditions contain < and &
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("plan: write: %w", err)
	}
	return b.Bytes(), nil
}

// LoadPlan reads the output of Marshal. It refuses another format and a plan whose hash does not
// match its content.
func LoadPlan(data []byte) (*Plan, error) { return readPlan(data, true) }

// ReadPlan reads a plan for reports. Unlike [LoadPlan] it accepts older formats, from oldestPlan
// on, unknown fields and any hash.
func ReadPlan(data []byte) (*Plan, error) { return readPlan(data, false) }

func readPlan(data []byte, strict bool) (*Plan, error) {
	p := &Plan{}
	var head struct {
		Format int    `json:"format"`
		Hash   string `json:"hash"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("plan: read: %w", err)
	}
	if oldest := cmp.Or(boolInt(strict)*PlanFormat, oldestPlan); head.Format < oldest || head.Format > PlanFormat {
		return nil, fmt.Errorf("plan: format %d, this program reads formats from %d to %d: use the version of plimsoll "+
			"that wrote it", head.Format, oldest, PlanFormat)
	}
	if now := sum(data, head.Hash); strict && now != head.Hash {
		return nil, fmt.Errorf("plan: its hash is %.12s, its content has %.12s: it was changed after it was made",
			head.Hash, now)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("plan: read: %w", err)
	}
	return p, nil
}

// sum returns the hash of a plan's text, with the hash in the text left out.
func sum(text []byte, hash string) string {
	text = append(bytes.TrimSpace(text), '\n')
	text = bytes.Replace(text, []byte(`"hash": "`+hash+`"`), []byte(`"hash": ""`), 1)
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// seal sets the hash of the plan and converts it to JSON and back, so that a new plan and a loaded
// plan are equal in every detail.
func (p *Plan) seal() (*Plan, error) {
	p.Hash = ""
	b, err := p.Marshal()
	if err != nil {
		return nil, err
	}
	hash := `"hash": "` + sum(b, "") + `"`
	return LoadPlan(bytes.Replace(b, []byte(`"hash": ""`), []byte(hash), 1))
}
