package words

import "testing"

func TestMoment(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0 s", 90: "90.0 s", 3720: "1:02 h", 86399: "23:59 h", 273900: "3 d 4:05 h"} {
		if got := Moment(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct{ text, want string }{{"äöü", "äöü"}, {"äöüß", "äö…"}, {"", ""}} {
		if got := Clip(c.text, 3); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
