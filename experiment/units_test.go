package experiment

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		v    scalar
		in   string
		text string // empty: an error
		n    float64
	}{
		{new(Bytes), "0", "0B", 0},
		{new(Bytes), "512", "512B", 512},
		{new(Bytes), "1KiB", "1KiB", 1024},
		{new(Bytes), "1KB", "1kB", 1000},
		{new(Bytes), "10GB", "10GB", 10e9}, // divisible by 1024, but 9765625KiB would help nobody
		{new(Bytes), "1.5GiB", "1536MiB", 3 << 29},
		{new(Bytes), "1025", "1025B", 1025},
		{new(Bytes), "8191PiB", "8191PiB", 8191 << 50},
		{new(Bytes), "1.0000000001GB", "", 0},
		{new(Bytes), "8192PiB", "", 0},
		{new(Bytes), "10M", "", 0},
		{new(Bytes), "10 MiB", "", 0},
		{new(Bytes), "1e3", "", 0},
		{new(Bytes), "", "", 0},
		{new(Bytes), ".5MiB", "", 0},
		{new(BitRate), "1Gbit", "1Gbit", 1e9},
		{new(BitRate), "1Gbps", "1Gbit", 1e9},
		{new(BitRate), "2.5Gbit", "2.5Gbit", 2.5e9},
		{new(BitRate), "512Kbit", "512kbit", 512e3},
		{new(BitRate), "9600bit", "9.6kbit", 9600},
		{new(BitRate), "unlimited", "", 0},
		{new(BitRate), "0bit", "", 0},
		{new(BitRate), "100MB", "", 0},
		{new(BitRate), "1Gb", "", 0},
		{new(BitRate), "1", "", 0},
		{new(Duration), "40ms", "40ms", 0.04},
		{new(Duration), "1m30s", "1m30s", 90},
		{new(Duration), "1.5h", "1h30m", 5400},
		{new(Duration), "10µs", "10us", 1e-5},
		{new(Duration), "0", "0s", 0},
		{new(Duration), "40", "", 0},
		{new(Duration), "-1s", "", 0},
		{new(Fraction), "1%", "1%", 0.01},
		{new(Fraction), "0.01", "1%", 0.01},
		{new(Fraction), "0.07", "7%", 0.07}, // 7 * 0.01 is not 0.07 in binary
		{new(Fraction), "100%", "100%", 1},
		{new(Fraction), "0", "0%", 0},
		{new(Fraction), "101%", "", 0},
		{new(OpRate), "100/s", "100/s", 100},
		{new(OpRate), "90/m", "1.5/s", 1.5},
		{new(OpRate), "0/s", "", 0},
		{new(OpRate), "100", "", 0},
	} {
		err := c.v.parse(c.in)
		n := number(reflect.ValueOf(c.v).Elem())
		switch {
		case c.text == "" && err == nil:
			t.Errorf("%T %q: read as %v, want an error", c.v, c.in, c.v)
		case c.text != "" && (err != nil || written(c.v) != c.text || n != c.n):
			t.Errorf("%T %q: %q %v %v, want %q %v", c.v, c.in, c.v, n, err, c.text, c.n)
		}
	}
}

// written returns a value as it is written in a file.
func written(v scalar) string { return fmt.Sprint(reflect.ValueOf(v).Elem().Interface()) }

func newScalars() []scalar {
	return []scalar{new(Bytes), new(BitRate), new(Duration), new(Fraction), new(OpRate), new(NodeCount), new(Moment),
		new(Stay)}
}

// Every parsed value can be written and parsed again to the same value, in text and in JSON, and
// the schema's pattern accepts both spellings.
func FuzzUnits(f *testing.F) {
	for _, seed := range []string{"10MiB", "10MB", "512", "1.5GiB", "0.1", "7%", "0.007%", "40ms", "1h2m3.000000004s",
		"100Mbit", "0.3Gbps", "3/h", "whole", "unlimited", "0", "33.333333333333333333%", "9007199254740993B",
		"0.0000001bit", "123456789.123456789kbit", "+1", "0002"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range newScalars() {
			if v.parse(text) != nil {
				continue
			}
			k := kinds()[reflect.TypeOf(v).Elem().Name()]
			pattern := regexp.MustCompile(k.pattern)
			if !pattern.MatchString(text) {
				t.Errorf("%s: %q is read, but the pattern refuses it", k.name, text)
			}
			if !pattern.MatchString(written(v)) {
				t.Errorf("%s: %q is written, but the pattern refuses it", k.name, written(v))
			}
			back := reflect.New(reflect.TypeOf(v).Elem()).Interface().(scalar)
			if err := back.parse(written(v)); err != nil || !reflect.DeepEqual(v, back) {
				t.Errorf("%s: %q written as %q, read as %q: %v", k.name, text, written(v), back, err)
			}
			if n := number(reflect.ValueOf(v).Elem()); n < 0 || math.IsInf(n, 0) || math.IsNaN(n) {
				t.Errorf("%s: %q is %v", k.name, text, n)
			}
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatalf("%s: %q: %v", k.name, text, err)
			}
			fromJSON := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			if err := json.Unmarshal(b, fromJSON); err != nil || !reflect.DeepEqual(any(v), fromJSON) {
				t.Errorf("%s: %q as JSON %s, read as %v: %v", k.name, text, b, fromJSON, err)
			}
		}
	})
}

func TestParseMoney(t *testing.T) {
	for text, want := range map[string]string{
		"3600": "3600", "0.000000000000000000000001": "0.000000000000000000000001", "00012.3400": "12.34", "0": "0",
	} {
		var got Money
		if err := got.parse(text); err != nil || string(got) != want {
			t.Errorf("%q is %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"-1": "is not an amount", "+1": "is not", "1e3": "exponent", "1,000": "separators", "1 SC": "currency",
		"": "is not an amount", ".5": "is not an amount", "5.": "",
		"all": "is not an amount", strings.Repeat("9", 100): "is not an amount",
	} {
		var got Money
		if err := got.parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestParsePrice(t *testing.T) {
	p, err := ParsePrice(" 0.014 USD (2018-06-01) ")
	if err != nil || p.Each.Cmp(big.NewRat(14, 1000)) != 0 || p.Currency != "USD" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ParsePrice("1 EUR by nobody"); err != nil || p.Currency != "EUR" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ParsePrice("1 EUR"); err != nil || p.Currency != "EUR" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"", "1", "USD 1", "-1 USD", "1,5 EUR", "1USD"} {
		if p, err := ParsePrice(text); err == nil {
			t.Errorf("%q is %+v", text, p)
		}
	}
}
