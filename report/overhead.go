package report

func overheadLens() lens { return retrieveLens() }

type textTable struct{}
