package deluge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// rencode is the encoding of Deluge's RPC messages: bencode with one-byte forms
// for what is small. The numbers are those of the Python package rencode 1.0.8.
const (
	codeFloat64   = 44
	codeList      = 59 // until codeEnd
	codeDict      = 60 // until codeEnd
	codeInt       = 61 // decimal digits until codeEnd
	codeInt8      = 62
	codeInt16     = 63
	codeInt32     = 64
	codeInt64     = 65
	codeFloat32   = 66
	codeTrue      = 67
	codeFalse     = 68
	codeNone      = 69
	codeNegative  = 70 // −1 … −32
	codeShortDict = 102
	codeEnd       = 127
	codeShortText = 128
	codeShortList = 192

	positives  = 44 // 0 … 43 are themselves
	negatives  = 32
	shortDicts = 25
	shortTexts = 64
	shortLists = 64
)

// errEncoding is what every malformed message is.
var errEncoding = errors.New("malformed rencode")

// maxDepth is far above what Deluge nests: 3.
const maxDepth = 32

// encode appends v: nil, bool, int, int64, float64, string, []any, map[string]any.
func encode(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, codeNone), nil
	case bool:
		if v {
			return append(b, codeTrue), nil
		}
		return append(b, codeFalse), nil
	case int:
		return encodeInt(b, int64(v)), nil
	case int64:
		return encodeInt(b, v), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(b, codeFloat64), math.Float64bits(v)), nil
	case string:
		if len(v) < shortTexts {
			return append(append(b, byte(codeShortText+len(v))), v...), nil
		}
		return append(append(strconv.AppendInt(b, int64(len(v)), 10), ':'), v...), nil
	case []any:
		return encodeList(b, v)
	case map[string]any:
		return encodeDict(b, v)
	}
	return nil, fmt.Errorf("rencode: a %T cannot be sent", v)
}

func encodeInt(b []byte, v int64) []byte {
	switch {
	case v >= 0 && v < positives:
		return append(b, byte(v))
	case v < 0 && v >= -negatives:
		return append(b, byte(codeNegative-1-v))
	case v == int64(int8(v)):
		return append(b, codeInt8, byte(v))
	case v == int64(int16(v)):
		return binary.BigEndian.AppendUint16(append(b, codeInt16), uint16(v))
	case v == int64(int32(v)):
		return binary.BigEndian.AppendUint32(append(b, codeInt32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeInt64), uint64(v))
}

func encodeList(b []byte, v []any) (_ []byte, err error) {
	short := len(v) < shortLists
	if short {
		b = append(b, byte(codeShortList+len(v)))
	} else {
		b = append(b, codeList)
	}
	for _, e := range v {
		if b, err = encode(b, e); err != nil {
			return nil, err
		}
	}
	if !short {
		b = append(b, codeEnd)
	}
	return b, nil
}

func encodeDict(b []byte, v map[string]any) (_ []byte, err error) {
	short := len(v) < shortDicts
	if short {
		b = append(b, byte(codeShortDict+len(v)))
	} else {
		b = append(b, codeDict)
	}
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if b, err = encode(b, k); err != nil {
			return nil, err
		}
		if b, err = encode(b, v[k]); err != nil {
			return nil, err
		}
	}
	if !short {
		b = append(b, codeEnd)
	}
	return b, nil
}

// decode reads one value that fills b: nil, bool, int64, float64, string,
// []any, map[string]any. Everything in it has come over the wire: memory is
// bounded by some multiple of len(b), the stack by maxDepth.
func decode(b []byte) (any, error) {
	d := decoder{b: b}
	v, err := d.value(0)
	if err != nil {
		return nil, fmt.Errorf("at byte %d of %d: %w", d.at, len(b), err)
	}
	if d.at != len(b) {
		return nil, fmt.Errorf("%d bytes follow the value: %w", len(b)-d.at, errEncoding)
	}
	return v, nil
}

type decoder struct {
	b  []byte
	at int
}

func (d *decoder) take(n int) ([]byte, error) {
	if n < 0 || n > len(d.b)-d.at {
		return nil, fmt.Errorf("it ends too early: %w", errEncoding)
	}
	d.at += n
	return d.b[d.at-n : d.at], nil
}

// until takes what comes before end, at most most bytes, and end itself.
func (d *decoder) until(end byte, most int) (string, error) {
	from := d.at
	for d.at < len(d.b) && d.at-from <= most {
		d.at++
		if d.b[d.at-1] == end {
			return string(d.b[from : d.at-1]), nil
		}
	}
	return "", fmt.Errorf("no byte %d ends a number: %w", end, errEncoding)
}

// ends says whether an open list or dict ends here, and takes the end.
func (d *decoder) ends() (bool, error) {
	c, err := d.take(1)
	if err != nil {
		return false, err
	}
	if c[0] == codeEnd {
		return true, nil
	}
	d.at--
	return false, nil
}

func (d *decoder) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d: %w", maxDepth, errEncoding)
	}
	head, err := d.take(1)
	if err != nil {
		return nil, err
	}
	switch c := int(head[0]); {
	case c < positives:
		return int64(c), nil
	case c >= codeNegative && c < codeNegative+negatives:
		return int64(codeNegative - 1 - c), nil
	case c >= '0' && c <= '9':
		d.at--
		return d.text()
	case c >= codeShortList:
		return d.list(c-codeShortList, depth)
	case c >= codeShortText:
		b, err := d.take(c - codeShortText)
		return string(b), err
	case c >= codeShortDict && c < codeShortDict+shortDicts:
		return d.dict(c-codeShortDict, depth)
	default:
		return d.other(c, depth)
	}
}

func (d *decoder) other(c, depth int) (any, error) {
	switch c {
	case codeNone:
		return nil, nil
	case codeTrue:
		return true, nil
	case codeFalse:
		return false, nil
	case codeList:
		return d.list(-1, depth)
	case codeDict:
		return d.dict(-1, depth)
	case codeInt:
		digits, err := d.until(codeEnd, 20)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number of 64 bits: %w", digits, errEncoding)
		}
		return n, nil
	}
	width := map[int]int{codeInt8: 1, codeInt16: 2, codeInt32: 4, codeInt64: 8, codeFloat32: 4, codeFloat64: 8}[c]
	if width == 0 {
		return nil, fmt.Errorf("no value begins with byte %d: %w", c, errEncoding)
	}
	b, err := d.take(width)
	if err != nil {
		return nil, err
	}
	switch c {
	case codeInt8:
		return int64(int8(b[0])), nil
	case codeInt16:
		return int64(int16(binary.BigEndian.Uint16(b))), nil
	case codeInt32:
		return int64(int32(binary.BigEndian.Uint32(b))), nil
	case codeInt64:
		return int64(binary.BigEndian.Uint64(b)), nil
	case codeFloat32:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b))), nil
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
}

func (d *decoder) text() (string, error) {
	digits, err := d.until(':', 10)
	if err != nil {
		return "", err
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return "", fmt.Errorf("%q is no length: %w", digits, errEncoding)
	}
	b, err := d.take(int(n))
	return string(b), err
}

// list reads n values, or with n < 0 until the end.
func (d *decoder) list(n, depth int) ([]any, error) {
	list := []any{}
	for i := 0; i != n; i++ {
		if n < 0 {
			if end, err := d.ends(); end || err != nil {
				return list, err
			}
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// dict reads n entries, or with n < 0 until the end. Deluge's keys are texts.
func (d *decoder) dict(n, depth int) (map[string]any, error) {
	dict := map[string]any{}
	for i := 0; i != n; i++ {
		if n < 0 {
			if end, err := d.ends(); end || err != nil {
				return dict, err
			}
		}
		k, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if _, twice := dict[key]; !ok || twice {
			return nil, fmt.Errorf("dict with the key %v, no text or there twice: %w", k, errEncoding)
		}
		if dict[key], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return dict, nil
}
