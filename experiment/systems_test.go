package experiment

import (
	"strings"
	"testing"
)

// Messages never contain a value that may be a secret, wherever it is in the file and whatever else
// is wrong on its line.
func TestMessagesQuoteNoSecret(t *testing.T) {
	const rest = "scenario: retrieve\nretrieve: {requests: 1}\n"
	for name, src := range map[string]string{
		"beside a mistake":        "systems:\n  - {use: s3, wiht: 1, with: {secret_key: hunter2, bukket: 1}}\n",
		"misspelt option":         "systems:\n  - use: s3\n    with: {secret_kye: hunter2, bukket: 1}\n",
		"in the wrong place":      "systems:\n  - use: s3\n    secret_key: hunter2\n",
		"misspelt section":        "systems:\n  - use: s3\n    wiht: {secret_key: hunter2}\n",
		"in an option of a type":  "systems:\n  - use: nginx\n    with: {workers: [hunter2], h2: hunter2}\n",
		"as a key":                "systems:\n  - use: s3\n    with: {secret_key: {hunter2}}\n",
		"in a list":               "systems:\n  - use: s3\n    with: {secret_key: [a, hunter2]}\n",
		"no mapping":              "systems:\n  - use: s3\n    with: hunter2\n",
		"systems are no list":     "systems: {use: s3, with: {secret_key: hunter2}}\n",
		"another system":          "systems: [{use: s33, with: {secret_key: hunter2}}]\n",
		"given twice":             "systems:\n  - use: s3\n    with: {secret_key: A, secret_key: hunter2}\n",
		"with an anchor":          "systems:\n  - use: s3\n    with: {secret_key: &a hunter2}\n",
		"with a tag":              "systems:\n  - use: s3\n    with: {secret_key: !!str hunter2}\n",
		"not closed":              "systems:\n  - use: s3\n    with:\n      secret_key: \"hunter2\n",
		"a bracket is not closed": "systems:\n  - use: s3\n    with: {secret_key: hunter2, x: [}\n",
		"a colon too many":        "systems:\n  - use: s3\n    with:\n      secret_key: hunter2: x\n",
		"in a URL":                "systems:\n  - {use: boost, with: {url: \"http://user:hunter2@192.0.2.1\"}}\n",
		"in a URL without scheme": "systems:\n  - {use: boost, with: {url: \"user:hunter2@192.0.2.1:80\"}}\n",
		"a token in a URL":        "systems:\n  - {use: boost, with: {url: \"https://hunter2@192.0.2.1:80\"}}\n",
		"a misspelt list":         "system: {use: sftp, url: \"sftp://me:hunter2@h/d\"}\n",
		"both misspelt":           "sytems: [{use: s3, wiht: {secret_key: hunter2}}]\n",
		"a section elsewhere":     "link: {title: hunter2, rate: 5}\nsystems: [nginx]\n",
	} {
		_, err := Parse("f.yaml", []byte(rest+src), nil, testCatalog())
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		for _, e := range err.(Errors) {
			if e.Line == 0 || e.Column == 0 {
				t.Errorf("%s: %d:%d is no place in the file", name, e.Line, e.Column)
			}
		}
	}
	for _, set := range []string{
		"systems.s3.with.secret_kye=hunter2", "systems.s33.with.secret_key=hunter2", "systems.s3.secret_key=hunter2",
		"link.ulr=hunter2", "link={ulr: hunter2, rate: 5}", "retrieve.wiht.secret_key=hunter2",
		"sytems.s3.with.secret_key=hunter2", "systems.s3.with.secret_key={hunter2",
		"systems.s3.with.secret_key:hunter2", "systems.s3.with=hunter2", "systems.nginx.with.h2=hunter2",
		"systems.nginx.with.workers=http://u:hunter2@192.0.2.1/", "systems.s3.with.secret_key=hunter2",
		"systems.s3.with={secret_key: hunter2, secret_key: hunter2}",
	} {
		_, err := Parse("f.yaml", []byte(rest+"systems: [nginx, s3]\n"), []string{set}, testCatalog())
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("--set %s: %v", set, err)
		}
	}
}

// A URL without credentials is not taken for one with credentials.
func TestCredentialsInURLs(t *testing.T) {
	for text, want := range map[string]bool{
		"http://192.0.2.1:80/a@b": false, "https://h/x?to=a@b:c": false, "sftp://user@host:22/dir": false,
		"http://[::1]:5/@x":        false,
		"URI:CHK:abc:def:3:10:100": false, "/path/with:colon/a": false, "user@host": false, "http://host/a:b@c": false,
		"":             false,
		"http://u:p@h": true, "http://u@h": true, "sftp://u:p@h/": true, "u:p@h:80": true, "http://u:p/q@h": true,
		"http://h/\nhttp://u:p@h/": true,
	} {
		if got := hasCredentials(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
