package engine

import "testing"

func TestNarrowEnough(t *testing.T) {
	tight := []float64{100, 101, 99, 100, 102, 98, 100, 101, 99, 100}
	wide := []float64{100, 150, 60, 90, 200, 40, 100, 130, 70, 110}
	if !narrowEnough(tight, 0.05) {
		t.Error("values within 2 % are not narrow enough for 5 %")
	}
	if narrowEnough(wide, 0.05) {
		t.Error("values that differ fivefold are narrow enough for 5 %")
	}
	if narrowEnough(tight[:3], 0.05) {
		t.Error("three values cannot have a 95 % interval of the median")
	}
	if narrowEnough(nil, 0.5) {
		t.Error("no values are narrow enough")
	}
}
