package experiment

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestParseJoin(t *testing.T) {
	for text, want := range map[string]struct {
		join  Join
		canon string
	}{
		"together":             {Join{}, "together"},
		"  together ":          {Join{}, "together"},
		"waves of 4 every 5s":  {Join{Wave: 4, Every: 5 * time.Second}, "waves of 4 every 5s"},
		"waves of 1 every 60s": {Join{Wave: 1, Every: time.Minute}, "waves of 1 every 1m"},
		"poisson 0.5/s":        {Join{Rate: 0.5}, "poisson 0.5/s"},
		"poisson   30/m":       {Join{Rate: 0.5}, "poisson 0.5/s"},
	} {
		j, err := ParseJoin(text)
		if err != nil || j != want.join || j.String() != want.canon || j.Together() != (want.canon == "together") {
			t.Errorf("%q: %+v %q, %v, want %+v %q", text, j, j, err, want.join, want.canon)
		}
	}
	for text, want := range map[string]string{
		"":                             "write `together`",
		"togehter":                     "did you mean `together`?",
		"waves":                        "of how many",
		"waves of":                     "has no number",
		"waves of 0 every 5s":          "0 nodes is none",
		"waves of 4":                   "when the next wave begins",
		"waves of 4 leechers every 5s": "`waves of 4 every 5s`",
		"waves of 4 every":             "no time is given",
		"waves of 4 every 5":           "`5s`",
		"waves of 4 every 0s":          "write `together`",
		"waves of 4.5 every 5s":        "not a whole number",
		"waves of -4 every 5s":         "negative",
		"waves of 300 every 5s":        "at most 256",
		"waves of 4 every 5s for 3":    `unexpected "for"`,
		"poisson":                      "at which rate",
		"poisson 0.5":                  "`0.5/s`",
		"poisson 0/s":                  "a rate of 0",
		"poisson 0.5 /s":               "`0.5/s`",
		"together now":                 `unexpected "now"`,
	} {
		refused(t, text, want, func(s string) error { _, err := ParseJoin(s); return err })
	}
}

func TestParseStay(t *testing.T) {
	for text, want := range map[string]struct {
		stay  Stay
		canon string
	}{
		"forever": {Stay{Forever: true}, "forever"},
		"leave":   {Stay{}, "leave"},
		"90s":     {Stay{For: 90 * time.Second}, "1m30s"},
	} {
		s, err := ParseStay(text)
		if err != nil || s != want.stay || s.String() != want.canon {
			t.Errorf("%q: %+v %q, %v, want %+v %q", text, s, s, err, want.stay, want.canon)
		}
	}
	for text, want := range map[string]string{
		"": "write `forever`", "forevr": "did you mean `forever`?", "0s": "write `leave`", "0": "write `leave`", "30": "`30s`", "-1s": "negative", "30 s": "without the space", "leave at once": "is not forever",
	} {
		refused(t, text, want, func(s string) error { _, err := ParseStay(s); return err })
	}
}

func TestParseFaults(t *testing.T) {
	never := math.NaN()
	for _, c := range []struct {
		text  string
		want  []Fault
		canon string
	}{
		{"none", nil, "none"},
		{"crash seeders at 50%", []Fault{{Kind: FaultCrash, Who: "seeders", Share: 1, Part: 0.5}}, ""},
		{"crash 1 seeder at 0s", []Fault{{Kind: FaultCrash, Who: "seeders", Count: 1, Part: never}}, ""},
		{"crash 1 seeders at 0", []Fault{{Kind: FaultCrash, Who: "seeders", Count: 1, Part: never}}, "crash 1 seeder at 0s"},
		{"crash 2 leechers at 10s for 5s", []Fault{{Kind: FaultCrash, Who: "leechers", Count: 2, Part: never, At: 10 * time.Second, For: 5 * time.Second}}, ""},
		{"crash 25% of leechers at 30% for 10s without data", []Fault{{Kind: FaultCrash, Who: "leechers", Share: 0.25, Part: 0.3, For: 10 * time.Second, Empty: true}}, ""},
		{"crash 100% of leechers at 0.0% for 60s", []Fault{{Kind: FaultCrash, Who: "leechers", Share: 1, Part: 0, For: time.Minute}}, "crash leechers at 0% for 1m"},
		{"cut 50% of nodes at 30% for 20s", []Fault{{Kind: FaultCut, Who: "nodes", Share: 0.5, Part: 0.3, For: 20 * time.Second}}, ""},
		{"cut seeders at 1m30s", []Fault{{Kind: FaultCut, Who: "seeders", Share: 1, Part: never, At: 90 * time.Second}}, ""},
		{"rate 10Mbit at 50%", []Fault{{Kind: FaultRate, Who: "nodes", Share: 1, Part: 0.5, Rate: 10e6}}, ""},
		{"rate 10Mbps of nodes at 50%", []Fault{{Kind: FaultRate, Who: "nodes", Share: 1, Part: 0.5, Rate: 10e6}}, "rate 10Mbit at 50%"},
		{"rate 1Mbit of 25% of leechers at 20s for 10s", []Fault{{Kind: FaultRate, Who: "leechers", Share: 0.25, Part: never, At: 20 * time.Second, For: 10 * time.Second, Rate: 1e6}}, ""},
		{" crash 2 leechers at 10% ;cut  1 node at 20% for 5s;crash seeders at 99.9% ", []Fault{
			{Kind: FaultCrash, Who: "leechers", Count: 2, Part: 0.1},
			{Kind: FaultCut, Who: "nodes", Count: 1, Part: 0.2, For: 5 * time.Second},
			{Kind: FaultCrash, Who: "seeders", Share: 1, Part: 0.999},
		}, "crash 2 leechers at 10%; cut 1 node at 20% for 5s; crash seeders at 99.9%"},
		{"cut 1 node at 10% for 5s; cut 2 nodes at 20% for 5s", []Fault{
			{Kind: FaultCut, Who: "nodes", Count: 1, Part: 0.1, For: 5 * time.Second},
			{Kind: FaultCut, Who: "nodes", Count: 2, Part: 0.2, For: 5 * time.Second},
		}, ""},
	} {
		if c.canon == "" {
			c.canon = c.text
		}
		got, err := ParseFaults(c.text)
		if err != nil || !sameFaults(got, c.want) || faultsText(got) != c.canon {
			t.Errorf("%q: %+v %q, %v, want %+v %q", c.text, got, faultsText(got), err, c.want, c.canon)
		}
	}
	for text, want := range map[string]string{
		"":                                               "a fault is empty",
		"crash seeders at 50%;":                          "a fault is empty",
		"crash seeders at 50%; none":                     "stands alone",
		"kill seeders at 50%":                            `"kill" is not a kind of fault`,
		"crush seeders at 50%":                           "did you mean `crash`?",
		"crash":                                          "does not say whom",
		"crash at 50%":                                   "does not say whom",
		"crash seeders":                                  "does not say when",
		"crash seeders at":                               "does not say when",
		"crash seeders 50%":                              "then comes when",
		"crash seeders at 50":                            "`at 50%` or `at 50s`",
		"crash seeders at half":                          "`at 50%`",
		"crash seeders at 101%":                          "more than the whole",
		"crash seeders at 100%":                          "too late",
		"crash seeders at -1s":                           "negative",
		"crash seaders at 50%":                           "did you mean `seeders`?",
		"crash all leechers at 50%":                      "leave the word away",
		"crash 2 at 50%":                                 "does not say whom",
		"crash 0 leechers at 50%":                        "none",
		"crash 0% of leechers at 50%":                    "a share of 0",
		"crash 2 of leechers at 50%":                     "`2 leechers`",
		"crash 25% leechers at 50%":                      "`25% of leechers`",
		"crash 0.25 of leechers at 50%":                  "not a whole number",
		"crash 2 leecher at 50%":                         "did you mean `leechers`?",
		"crash 2 leechers at 10s for":                    "no time is given",
		"crash 2 leechers at 10s for 0s":                 "never undone",
		"crash 2 leechers at 10s for 5":                  "`5s`",
		"crash 2 leechers at 10s without":                "`without data`",
		"crash leechers at 9s without data":              "nothing is started again",
		"crash seeders at 50% for 10s without data":      "without anything to give",
		"crash 50% of nodes at 9s for 9s without data":   "without anything to give",
		"cut 2 nodes at 50% for 10s without data":        "only `crash` has it",
		"cut nodes at 50%":                               "cuts all nodes off from nobody",
		"cut 100% of nodes at 50%":                       "cuts all nodes off from nobody",
		"cut 1 node at 10%; cut 2 nodes at 20% for 5s":   "never heals",
		"rate 10 at 50%":                                 "`10Mbit`",
		"rate 10MB of leechers at 50%":                   "`80Mbit`",
		"rate unlimited at 50%":                          "take the limit of a link away",
		"rate at 50%":                                    "which rate",
		"rate 0bit at 50%":                               "lets nothing through",
		"crash seeders at 50%, cut 1 node at 60%":        `"50%," is neither`,
		"crash seeders at 50% cut 1 node at 60% for 10s": "`;` stands between two",
	} {
		refused(t, text, want, func(s string) error { _, err := ParseFaults(s); return err })
	}
}

func refused(t *testing.T, text, want string, parse func(string) error) {
	t.Helper()
	if err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%q: %v, want %s", text, err, want)
	} else if _, ok := err.(*unitError); !ok {
		t.Errorf("%q: an error of type %T has no hint", text, err)
	}
}

func sameFaults(a, b []Fault) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if math.IsNaN(x.Part) && math.IsNaN(y.Part) {
			x.Part, y.Part = 0, 0
		}
		if x != y {
			return false
		}
	}
	return true
}

// A share is rounded up to whole nodes, and a number is what it says.
func TestFaultOf(t *testing.T) {
	for text, want := range map[string][3]int{ // of 1, 7 and 30
		"crash leechers at 1s":           {1, 7, 30},
		"crash 25% of leechers at 1s":    {1, 2, 8},
		"crash 10% of leechers at 1s":    {1, 1, 3},
		"crash 0.001% of leechers at 1s": {1, 1, 1},
		"crash 99% of leechers at 1s":    {1, 7, 30},
		"crash 4 leechers at 1s":         {4, 4, 4},
	} {
		faults, err := ParseFaults(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]int{faults[0].Of(1), faults[0].Of(7), faults[0].Of(30)}; got != want {
			t.Errorf("%s: %v of 1, 7 and 30, want %v", text, got, want)
		}
	}
}

// What is read has a canonical text that means the same, and the schema's
// pattern allows both.
func FuzzSwarmForms(f *testing.F) {
	for _, seed := range []string{
		"together", "waves of 4 every 5s", "poisson 0.5/s", "poisson 20/m", "forever", "leave", "1m30s", "0.001us",
		"none", "crash 1 seeder at 33.333333333333333%", "crash 25% of leechers at 30% for 10s without data; cut 2 nodes at 0 for 20s",
		"rate 0.3Gbps of 0.0000001% of seeders at 20s for 10s ; rate 10Mbit at 50%", "cut 007 leechers at 00.5%",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"join", "stay", "faults"} {
			form := formOf(name)
			canon, err := form.parse(text)
			if err != nil {
				if u, ok := err.(*unitError); !ok || u.msg == "" {
					t.Errorf("%s: %q: %#v", name, text, err)
				}
				continue
			}
			again, err := form.parse(canon)
			if err != nil || again != canon {
				t.Errorf("%s: %q is written %q, and that %q: %v", name, text, canon, again, err)
			}
			pattern := regexp.MustCompile(form.kind.pattern)
			for _, s := range []string{text, canon} {
				if strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }) {
					continue // what \s is differs between Go and ECMA 262
				}
				if !pattern.MatchString(s) {
					t.Errorf("%s: %q is read, but the pattern refuses it", name, s)
				}
			}
		}
		if a, err := ParseFaults(text); err == nil {
			b, err := ParseFaults(faultsText(a))
			if err != nil || !sameFaults(a, b) {
				t.Errorf("%q: %+v, written and read again %+v: %v", text, a, b, err)
			}
		}
	})
}
