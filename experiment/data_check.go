package experiment

import (
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// sources are the keys of data that say where sizes come from.
var sources = []string{"size", "mix", "spread", "directory", "trace"}

// data asks for what is stored, where a system starts empty or the scenario stores it.
func (d *decoder) data(e *Experiment) {
	switch {
	case e.Scenario == "upload":
		d.dataSource(e)
	case e.Retrieve.Replays() != nil:
		if n := d.at["data"]; n != nil {
			d.fail("data", n, "take one of them away",
				"`data` has no meaning with `retrieve.arrivals.log`: paths and sizes are those of the log")
		}
	case e.Scenario != "collect" && e.Scenario != "sync" && e.Data.Size == 0:
		d.missingData(e)
	}
}

// missingData wants objects but for attached systems that have their own.
func (d *decoder) missingData(e *Experiment) {
	started := slices.ContainsFunc(e.Systems, func(s SystemUse) bool { return s.Mode == "start" })
	if !d.ok("data", "scenario") || e.Scenario == "retrieve" && !started && d.at["data"] == nil {
		return
	}
	hint := "write `data: {size: 64MiB}`; the systems that are started here are empty"
	if e.Scenario == "upload" {
		hint = "write `data: {objects: 1000, size: 40MiB}`; mix, spread, directory and trace are other sources of sizes"
	}
	d.fail("data.size", d.first("data", e.Scenario, "scenario"), hint,
		"missing key `data.size`: how large are the objects?")
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
			d.fail("data."+key, n, "keep one of them", "`data.%s` and `data.%s` both say where the sizes come from",
				source, key)
		}
	}
	if source == "" {
		d.missingData(e)
		return
	}
	if source == "directory" || source == "trace" {
		if n := d.at["data.objects"]; n != nil {
			d.fail("data.objects", n, "take one of them away",
				"`data.objects` has no meaning with `data.%s`, which says it by itself", source)
		}
		e.Data.Objects = 0
		if n := d.at["data."+source]; n.text == "" {
			d.fail("data."+source, n, "give the path, relative to the experiment file or absolute",
				"`data.%s` is empty",
				source)
		}
	}
	d.tooMuch(e, source)
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
			d.fail("data."+source, d.first("data."+source, "data"), "at most 4 EiB (4,611 PB) in all",
				"%s is more than a data set can have", words.Bytes(bytes))
			return
		}
	}
}

// MaxTotal is the most bytes that a data set may have, copies included: 4 EiB, so
// that sums of two stay within 64 bits.
const MaxTotal = 1 << 62

// permissions asks for the permission to store objects in attached systems.
func (d *decoder) permissions(e *Experiment) {
	if e.Scenario != "upload" && (e.Retrieve == nil || e.Retrieve.Mix == nil) || !d.ok("allow") {
		return
	}
	attached := slices.IndexFunc(e.Systems, func(s SystemUse) bool { return s.Mode == "attach" })
	if attached >= 0 && d.ok("systems") && !e.allows("write") {
		at := d.first("allow", fmt.Sprintf("systems[%d].use", attached), fmt.Sprintf("systems[%d]", attached))
		d.fail("allow", at, "write `allow: [write]`, and spend for systems that are paid",
			"the scenario %s stores objects, and may not write to the attached system `%s`", e.Scenario,
			e.Systems[attached].Name)
	}
}

func (e *Experiment) allows(what string) bool { return slices.Contains(e.Allow, what) }
