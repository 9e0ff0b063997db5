package report

import "strings"

// Ruling placeholder
type Ruling struct{}

func (g Ruling) text(b *strings.Builder, width int) {}

func (g Ruling) markdown(b *strings.Builder) {}
