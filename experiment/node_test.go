package experiment

import (
	"runtime"
	"strings"
	"testing"
)

const setBase = `scenario: retrieve
systems:
  - nginx
  - name: ipfs
    use: boxo
    with: {chunk: 256KiB}
baseline: nginx
data: {size: 1MiB}
retrieve: {requests: 10, concurrency: 4}
repetitions: 3
where: [system != "ipfs" || retrieve.concurrency < 100]
`

func TestSet(t *testing.T) {
	for _, c := range []struct {
		set  string
		want func(*Experiment) bool
	}{
		{"seed=7", func(e *Experiment) bool { return e.Seed == 7 }},
		{"title=one, two: three", func(e *Experiment) bool { return e.Title == "one, two: three" }},
		{"retrieve.concurrency=1,8, 16",
			func(e *Experiment) bool { return string(e.Factors["retrieve.concurrency"]) == "[1,8,16]" }},
		{"retrieve.concurrency=[1, 8]",
			func(e *Experiment) bool { return string(e.Factors["retrieve.concurrency"]) == "[1,8]" }},
		{"link.rate=1Gbit", func(e *Experiment) bool { return e.Link.Rate == 1e9 }},
		{"link={rate: 1Gbit, delay: 40ms}", func(e *Experiment) bool { return e.Link.Delay == 40e6 }},
		{"repetitions=9", func(e *Experiment) bool { return e.Repetitions.Max == 9 }},
		{"repetitions.max=3", func(e *Experiment) bool { return e.Repetitions.Max == 3 }},
		{"retrieve.concurrency=", func(e *Experiment) bool { return e.Retrieve.Concurrency == 1 }},
		{"systems.nginx.with.workers=4", func(e *Experiment) bool { return e.Systems[0].With["workers"] == "4" }},
		{"systems.ipfs.with.chunk=1MiB", func(e *Experiment) bool { return e.Systems[1].With["chunk"] == "1048576" }},
		{"systems.2.with.format=car", func(e *Experiment) bool { return e.Systems[1].With["format"] == "car" }},
		{"systems.ipfs.name=boxo; where=", // it names ipfs
			func(e *Experiment) bool { return e.Systems[1].Name == "boxo" }},
		{"systems=ipfs", func(e *Experiment) bool {
			return len(e.Systems) == 1 && e.Systems[0].With["chunk"] == "262144" && e.Baseline == "none"
		}},
		{"systems=boxo", func(e *Experiment) bool { return len(e.Systems) == 1 && e.Systems[0].Name == "ipfs" }},
		{"systems=static,nginx", func(e *Experiment) bool {
			return len(e.Systems) == 2 && e.Systems[0].Use == "static" && e.Baseline == "nginx" && e.Systems[1].Baseline
		}},
		{"systems.nginx=", func(e *Experiment) bool { return len(e.Systems) == 1 && e.Baseline == "none" }},
		{"systems.nginx=static; baseline=static", func(e *Experiment) bool { return e.Systems[0].Use == "static" }},
		{`where=["retrieve.concurrency in [1, 4]"]`, func(e *Experiment) bool { return len(e.Where) == 1 }},
		{"where=retrieve.concurrency in [1, 4]",
			func(e *Experiment) bool { return e.Where[0] == "retrieve.concurrency in [1, 4]" }},
		{"allow=write,spend", func(e *Experiment) bool { return len(e.Allow) == 2 }},
	} {
		e, err := Parse("base.yaml", []byte(setBase), strings.Split(c.set, "; "), testCatalog())
		if err != nil {
			t.Errorf("--set %s: %v", c.set, err)
		} else if !c.want(e) {
			t.Errorf("--set %s has not the effect: %+v", c.set, e)
		}
	}
}

// Values set on the command line are checked like those of the file, and the message contains where
// they were set.
func TestSetErrors(t *testing.T) {
	for _, c := range []struct{ set, message, hint string }{
		{"retreive.concurrency=4", "unknown key `retreive` in the file", "did you mean `retrieve`?"},
		{"retrieve.concurency=4", "unknown key `concurency` in `retrieve`", "did you mean `concurrency`?"},
		{"link.rate=1Gbit,100MB", "`link.rate`: \"100MB\" is not a rate such as 100Mbit",
			"rates are in bits per second: 8Mbit for 1MB/s"},
		{"data.size=[1MiB, 10M]", "`data.size`: \"10M\" is not a size such as 10MiB",
			"did you mean `10MiB` or `10MB`?"},
		{"systems=nginx,boksoo", "unknown system `boksoo`",
			"known: nginx, static, boxo, boost, s3, mesh, fanout, ledger, archive, tape"},
		{"systems.ngnix.with.workers=1", "the list has no entry `ngnix`", "did you mean `nginx`?"},
		{"systems.boost.with.url=x", "the list has no entry `boost`", "add it first: --set systems=nginx,ipfs,boost"},
		{"systems.nginx.with.worker=1", "system `nginx` has no option `worker`", "did you mean `workers`?"},
		{"seed.x=1", "`seed` must be a whole number such as 16, not a mapping", ""},
		{"title", "not key=value", "write --set key=value, such as --set retrieve.concurrency=1,4"},
		{"retrieve.range=[1MiB", "not YAML: sequence end token ']' not found",
			"indent with spaces only, and quote a text that contains `: `"},
	} {
		_, err := Parse("base.yaml", []byte(setBase), []string{c.set}, testCatalog())
		key, _, is := strings.Cut(c.set, "=")
		want := Error{File: "--set " + key, Message: c.message, Hint: c.hint}
		if !is {
			want.File = "--set"
		}
		if err == nil || err.Error() != want.Error() {
			t.Errorf("--set %s:\n%v\nwant:\n%v", c.set, err, want.Error())
		}
	}
	_, err := Parse("base.yaml", []byte(setBase), []string{"scenario="}, testCatalog())
	if err == nil || !strings.HasPrefix(err.Error(), "base.yaml:1:1: missing key `scenario`") {
		t.Errorf("no scenario: %v", err)
	}
}

// A single condition needs neither brackets nor quotes; a list of them needs both.
func TestSetWhere(t *testing.T) {
	const src = "scenario: retrieve\nsystems: [nginx, boxo]\ndata: {size: 1MiB}\nretrieve: {concurrency: [1, 2, 8], " +
		"duration: 1s}\nwhere: [retrieve.concurrency > 1]\n"
	for set, want := range map[string]int{
		"where=retrieve.concurrency in [1, 2]":                                 4,
		`where=["retrieve.concurrency in [1, 2]", "system == boxo"]`:           2,
		"where=!(system == nginx)":                                             3,
		"where=[retrieve.concurrency == 8 || system == nginx, system != boxo]": 3,
		"where=": 6,
	} {
		if got := len(mustPlan(t, src, set).Cells); got != want {
			t.Errorf("%s: %d cells, want %d", set, got, want)
		}
	}
}

// Reading a file of the maximum size takes little memory, whatever its content.
func TestReadingTakesLittleMemory(t *testing.T) {
	for _, piece := range []string{
		"- ", "[]", "[[]]", "{}", "? ", "a: ", "&a ", "*a ", "!a ", "<<: ", "- [", "[1,", "{a: ", "a:\n", "- a\n",
		"- \n", "'' ", "\"a\" ", ": ", "---\n", "|\n", "#\n", "[a]: ", "- - a\n",
	} {
		text := []byte(strings.Repeat(piece, maxSource/len(piece)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse("f.yaml", text, nil, testCatalog())
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%q: accepted", piece)
		}
		// The total allocated is an upper bound of the memory in use.
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 300 {
			t.Errorf("%q: %d MiB", piece, took)
		}
	}
}
