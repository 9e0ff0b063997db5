package sshd

import "testing"

func TestOutsideRoot(t *testing.T) {
	for text, want := range map[string]int{
		"         0          0 4294967295\n":                          -1, // the machine's root
		"         0       1001          1\n":                          1001,
		"         0       1000          1\n         1 100000 65536\n": -1, // contains other users
		"      1001       1001          1\n":                          -1,
		"":                                                            -1,
	} {
		outside, mapped := outsideRoot(text)
		if mapped != (want >= 0) || mapped && outside != want {
			t.Errorf("%q: %d, %v", text, outside, mapped)
		}
	}
}

func TestLiteral(t *testing.T) {
	for name, want := range map[string]bool{
		"/tmp/run-1/scp_h1/data": true, "=C3=BC.x": true,
		"a b": false, "a*": false, "$(x)": false, "a'b": false, "ü": false, "a\nb": false, "a:b": false, "~": false,
	} {
		if Literal(name) != want {
			t.Errorf("%q is literal: %v", name, !want)
		}
	}
}
