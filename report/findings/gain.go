package findings

import (
	"math"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// EffectFloor is the smallest change of a ratio that a verdict or a rule speaks of. It
// equals the default tolerance of a link: two trials whose links may differ by this
// much cannot support a smaller claim.
const EffectFloor = 0.05

// Gain is a ratio of times with its interval. NaN: not known.
type Gain struct {
	Value, Lo, Hi float64
	Shown         bool // it differs from 1; false: nothing is shown
	N             int  // pairs of trials
}

// Words is the gain in percent, with "~" when nothing is shown.
func (g Gain) Words() string {
	s := words.Gain(g.Value, g.Lo, g.Hi)
	if !g.Shown && g.known() {
		s = "~ " + s
	}
	return s
}

func (g Gain) known() bool   { return g.Value-g.Value == 0 }
func (g Gain) bounded() bool { return g.Lo-g.Lo == 0 && g.Hi-g.Hi == 0 }

// small reports whether the whole interval lies below what a rule speaks of: it is
// known, and none to speak of.
func (g Gain) small() bool {
	return g.bounded() && math.Abs(math.Log(g.Lo)) < math.Log1p(EffectFloor) && math.Abs(math.Log(g.Hi)) < math.Log1p(EffectFloor)
}
