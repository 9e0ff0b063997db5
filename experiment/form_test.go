package experiment

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

func TestParseMoney(t *testing.T) {
	for text, want := range map[string]string{
		"3600": "3600", "0.000000000000000000000001": "0.000000000000000000000001", "00012.3400": "12.34", "0": "0",
	} {
		if got, err := parseMoney(text); err != nil || got != want {
			t.Errorf("%q is %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"-1": "negative", "+1": "leave the + away", "1e3": "exponent", "1,000": "write `1000`", "1 SC": "currency", "": "is not an amount", ".5": "is not an amount", "5.": "",
		"all": "is not an amount", strings.Repeat("9", 100): "is not an amount",
	} {
		if got, err := parseMoney(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestParsePrice(t *testing.T) {
	p, err := ParsePrice(" 0.014 USD (2018-06-01) ")
	if err != nil || p.Each.Cmp(big.NewRat(14, 1000)) != 0 || p.Currency != "USD" || p.Source != "2018-06-01" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ParsePrice("1 EUR by nobody"); err != nil || p.Source != "by nobody" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ParsePrice("1 EUR"); err != nil || p.Source != "" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"", "1", "USD 1", "-1 USD", "1,5 EUR", "1USD"} {
		if p, err := ParsePrice(text); err == nil {
			t.Errorf("%q is %+v", text, p)
		}
	}
}

// Ways of writing one mix have one canonical text, which means the same.
func TestMixCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"60% 2MiB..6MiB,40%   20MiB":       "60% 2MiB..6MiB, 40% 20MiB",
		"0.6 1024B..2048, 0.4 1KB":         "60% 1KiB..2KiB, 40% 1kB",
		"33.3% 1B, 33.3% 2B, 33.4% 3B..3B": "33.3% 1B, 33.3% 2B, 33.4% 3B",
		"33.3% 1B, 33.3% 2B, 33.3% 3B":     "33.3% 1B, 33.3% 2B, 33.3% 3B",
	} {
		got, err := parseMixText(text)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
			continue
		}
		if again, err := parseMixText(got); again != got || err != nil {
			t.Errorf("%q becomes %q, %v", got, again, err)
		}
	}
	for _, text := range []string{"", "100%", "50% 1B", "60% 1B, 50% 1B", "0% 1B, 100% 1B", "100% 0B", "100% 2B..1B", "100% 1B..", "100% ..1B", "100% 1PiB..9PiB", "100% 1B,", "100% 1B 2B", "100% 2..6MiB", "100% 10M"} {
		if got, err := parseMixText(text); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// The mean of a log-uniform size is (b−a)/ln(b/a), against a sum over its
// quantiles.
func TestTotal(t *testing.T) {
	numeric := func(a, b float64) float64 {
		sum, n := 0.0, 100_000
		for i := range n {
			sum += a * math.Pow(b/a, (float64(i)+0.5)/float64(n))
		}
		return sum / float64(n)
	}
	for _, c := range []struct {
		data           ResolvedData
		objects, bytes float64
	}{
		{ResolvedData{Objects: 10, Size: 5, Copies: 3}, 30, 150},
		{ResolvedData{Objects: 10, Size: 5}, 10, 50},
		{ResolvedData{Objects: 10, Spread: "1kB..1GB"}, 10, 10 * numeric(1e3, 1e9)},
		{ResolvedData{Objects: 10, Mix: "60% 2MiB..6MiB, 30% 20MiB, 10% 700MiB"}, 10, 6*numeric(2<<20, 6<<20) + 3*(20<<20) + 700<<20},
		{ResolvedData{Directory: "x", Copies: 2}, 0, 0},
		{ResolvedData{Trace: "x"}, 0, 0},
		{ResolvedData{}, 0, 0},
	} {
		objects, bytes := c.data.Total()
		if objects != c.objects || math.Abs(bytes-c.bytes) > 1e-6*c.bytes {
			t.Errorf("%+v: %v objects of %v bytes, want %v of %v", c.data, objects, bytes, c.objects, c.bytes)
		}
	}
}
