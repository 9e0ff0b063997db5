package words

import "testing"

func TestMoney(t *testing.T) {
	for v, want := range map[float64]string{69.31: "69.31 SC", -69.31: "-69.31 SC", 12345.6: "12,345 SC",
		3.5e8: "350 million SC", 2e9: "2.00 billion SC"} {
		if got := Money(v, "SC"); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
