package words

import (
	"math/big"
	"strings"
)

// Decimal formats a number with at most that many decimals, at least one, and without trailing zeros.
func Decimal(v *big.Rat, most int) string {
	return strings.TrimSuffix(strings.TrimRight(v.FloatString(most), "0"), ".")
}

// Money formats an amount of a currency: "69.3 SC", "350 million $".
func Money(v float64, currency string) string {
	switch size := max(v, -v); {
	case size >= 1e9:
		return Digits(v/1e9, 3) + " billion " + currency
	case size >= 1e7:
		return Digits(v/1e6, 3) + " million " + currency
	case size >= 1e4:
		return Count(int64(v)) + " " + currency
	}
	return Digits(v, 4) + " " + currency
}
