package disseminate

import "github.com/plimsoll-project/plimsoll/experiment"

// In tests, what goes wrong is written in the words of records.

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func faultsOf(text string) experiment.Faults { return must(experiment.FaultsOf(text)) }
func joinOf(text string) experiment.Join     { return must(experiment.JoinOf(text)) }
