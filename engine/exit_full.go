package engine

// storageFull ends a trial when the system has said that it can take no more.
type storageFull struct{}

func (storageFull) Name() string { return "storage_full" }

func (storageFull) Met(p progressSoFar) (string, bool) {
	if p.State == nil || p.State.Full == "" {
		return "", false
	}
	return "the system can take no more: " + p.State.Full, true
}
