package experiment

// RangeSize is the size of a byte range, or [Whole] for whole objects.
type RangeSize Bytes

// Whole stands for the whole object.
const Whole RangeSize = 0

func (r *RangeSize) parse(s string) error {
	if s == "whole" {
		*r = Whole
		return nil
	}
	var b Bytes
	if err := b.parse(s); err != nil {
		return err
	}
	if b == 0 {
		return badUnit("write `whole` for whole objects", "a range of 0 bytes fetches nothing")
	}
	*r = RangeSize(b)
	return nil
}

// String is the size, or "whole".
func (r RangeSize) String() string {
	if r == Whole {
		return "whole"
	}
	return Bytes(r).String()
}

func (RangeSize) describe() scalarKind {
	k := Bytes(0).describe()
	k.name = "range"
	k.noun = "a size such as 10MiB, or whole"
	k.pattern = `^(whole|[0-9]+(\.[0-9]+)?(B|KiB|MiB|GiB|TiB|PiB|kB|KB|MB|GB|TB|PB)?)$`
	k.doc = "A size, or `whole` for the whole object."
	return k
}
