package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Marshal is the plan as it is stored: JSON with the fields in the order of
// their types, maps sorted, indented for readers. The same plan always gives
// the same bytes.
func (p *Plan) Marshal() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // conditions have < and & in them
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("plan: write: %w", err)
	}
	return b.Bytes(), nil
}

// LoadPlan reads what Marshal wrote. It refuses another format and a plan whose
// hash does not match its content.
func LoadPlan(data []byte) (*Plan, error) {
	p := &Plan{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		var other struct {
			Format int `json:"format"`
		}
		if json.Unmarshal(data, &other) == nil && other.Format != PlanFormat {
			return nil, fmt.Errorf("plan: format %d, this version reads format %d", other.Format, PlanFormat)
		}
		return nil, fmt.Errorf("plan: read: %w", err)
	}
	if p.Format != PlanFormat {
		return nil, fmt.Errorf("plan: format %d, this version reads format %d", p.Format, PlanFormat)
	}
	sum, err := p.sum()
	if err != nil {
		return nil, err
	}
	if sum != p.Hash {
		return nil, fmt.Errorf("plan: its hash is %.12s, its content has %.12s: it was changed after it was made", p.Hash, sum)
	}
	return p, nil
}

// sum is the plan's hash.
func (p *Plan) sum() (string, error) {
	unhashed := *p
	unhashed.Hash = ""
	b, err := unhashed.Marshal()
	if err != nil {
		return "", err
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:]), nil
}

// seal sets the hash and goes once through JSON, so that a plan just made and
// a plan loaded are equal in every detail.
func (p *Plan) seal() (*Plan, error) {
	sum, err := p.sum()
	if err != nil {
		return nil, err
	}
	p.Hash = sum
	b, err := p.Marshal()
	if err != nil {
		return nil, err
	}
	return LoadPlan(b)
}
