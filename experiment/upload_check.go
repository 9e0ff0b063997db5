package experiment

import (
	"fmt"
	"reflect"
)

// loads reports whether the scenario is one of those whose single trial goes on
// for as long as it takes.
func (e *Experiment) loads() bool { return e.Scenario == "upload" || e.Scenario == "collect" }

// dataType is the section data.
var dataType = reflect.TypeFor[Data]()

// sources are the keys of data that say where sizes come from.
var sources = []string{"size", "mix", "spread", "directory", "trace"}

// upload checks what belongs to load tests: that they have all they need, and
// that no other scenario has it.
func (d *decoder) upload(e *Experiment) {
	if !d.ok("scenario") || e.Scenario == "" {
		return
	}
	d.onlyLoads(e)
	if e.Scenario == "upload" {
		d.dataSource(e)
		d.mayWrite(e)
	}
	if e.Upload != nil {
		d.mayAllow(e)
	}
}

// onlyLoads refuses keys that have a meaning for load tests only.
func (d *decoder) onlyLoads(e *Experiment) {
	refuse := func(path, hint, format string, args ...any) {
		// Fine where it is the default: sections are written by tools, too.
		if n := d.at[path]; n != nil {
			d.fail(path, n, hint, format, args...)
		}
	}
	if e.Scenario == "collect" {
		refuse("data", "take it away, or ask with the scenario upload", "`data` has no meaning for the scenario collect: it stores nothing")
	}
	if e.Scenario == "sync" {
		refuse("data", "take it away: `sync.blocks` and `sync.transactions` say how long the chain is", "`data` has no meaning for the scenario sync: no objects are stored")
	}
	if e.Scenario != "upload" {
		for _, f := range tableOf(dataType).fields {
			if e.Scenario != "collect" && e.Scenario != "sync" && f.key != "objects" && f.key != "size" {
				refuse("data."+f.key, "take it away; the other scenarios have `objects` and `size`", "`data.%s` is for the scenario upload, not for %s", f.key, e.Scenario)
			}
		}
		for _, key := range []string{"steady", "storage_full"} {
			refuse("exit."+key, "take it away", "`exit.%s` is for the scenario upload, not for %s", key, e.Scenario)
		}
	}
	if !e.loads() {
		for _, key := range []string{"max_spend", "floor"} {
			refuse("exit."+key, "take it away; `max_runtime`, `max_bytes` and `max_errors` end every kind of run", "`exit.%s` is for the scenarios upload and collect, not for %s", key, e.Scenario)
		}
	}
}

// dataSource wants exactly one source of sizes, and what goes with it.
func (d *decoder) dataSource(e *Experiment) {
	var source string
	for _, key := range sources {
		n := d.at["data."+key]
		switch {
		case n == nil:
		case source == "":
			source = key
		default:
			d.fail("data."+key, n, "keep one of them", "`data.%s` and `data.%s` both say where the sizes come from", source, key)
		}
	}
	if source == "" {
		if d.ok("data") {
			d.fail("data.size", d.first("data", "upload", "scenario"), "write `data: {objects: 1000, size: 40MiB}`; mix, spread, directory and trace are other sources of sizes",
				"missing key `data.size`: the scenario upload stores a data set")
		}
		return
	}
	no := func(key, why string) {
		if n := d.at["data."+key]; n != nil {
			d.fail("data."+key, n, "take one of them away", "`data.%s` has no meaning with `data.%s`: %s", key, source, why)
		}
	}
	switch source {
	case "directory":
		no("objects", "all files of the tree are stored")
		no("compressible", "the content is that of the files")
		no("duplicate", "the content is that of the files")
	case "trace":
		no("objects", "there is one object for each line")
		no("duplicate", "each line has a size of its own")
	}
	for _, key := range []string{"directory", "trace"} {
		if key != source {
			continue
		}
		e.Data.Objects = 0
		if n := d.at["data."+key]; n.text == "" {
			d.fail("data."+key, n, "give the path, relative to the experiment file or absolute", "`data.%s` is empty", key)
		}
	}
	d.tooMuch(e, source)
	if d.ok("data") && e.Data.Copies > maxCopied/max(1, e.Data.Objects) {
		d.fail("data.copies", d.first("data.copies", "data"), fmt.Sprintf("at most %d in all", int64(maxCopied)), "%d copies of %d objects are too many", e.Data.Copies, e.Data.Objects)
	}
}

// tooMuch refuses more bytes than can be counted.
func (d *decoder) tooMuch(e *Experiment, source string) {
	if !d.ok("data") {
		return
	}
	for _, size := range append(levelsOf[Bytes](e, dataSizePath), 0) {
		r := e.Data
		r.Size = size
		if _, bytes := r.Total(); bytes > MaxTotal {
			d.fail("data."+source, d.first("data."+source, "data"), "at most 4 EiB (4,611 PB) in all", "%s is more than a data set can have", RoughBytes(bytes))
			return
		}
	}
}

// MaxTotal is the most bytes that a data set may have, copies included: 4 EiB, so
// that sums of two stay within 64 bits.
const MaxTotal = 1 << 62

// maxCopied is beyond what any system was ever asked to hold in a test.
const maxCopied = 1_000_000_000

// mayWrite asks for the permission to store objects in attached systems.
func (d *decoder) mayWrite(e *Experiment) {
	if !d.ok("systems", "allow") || e.allows("write") {
		return
	}
	for i, s := range e.Systems {
		if s.Mode == "attach" {
			d.fail("allow", d.first("allow", fmt.Sprintf("systems[%d].use", i), fmt.Sprintf("systems[%d]", i)), "write `allow: [write]`, and spend for systems that are paid",
				"the scenario upload stores objects, and may not write to the attached system `%s`", s.Name)
			return
		}
	}
}

// mayAllow asks for the permission to spend where a budget is to be set.
func (d *decoder) mayAllow(e *Experiment) {
	if n := d.at["upload.need.allowance"]; n != nil && d.ok("upload.need.allowance", "allow") && !e.allows("spend") {
		d.fail("upload.need.allowance", n, "write `allow: [write, spend]`, or take the key away", "`upload.need.allowance` sets a budget, which `allow` does not permit")
	}
}

func (e *Experiment) allows(what string) bool {
	for _, a := range e.Allow {
		if a == what {
			return true
		}
	}
	return false
}
