// Package terminal makes text from containers and users safe to print.
package terminal

import (
	"strconv"
	"strings"
	"unicode"
)

// Escape returns text with its control and formatting characters quoted as in Go, so that
// none of them is a command to a terminal, and with further lines indented, so that they
// cannot be mistaken for lines of the program. A tab is kept.
func Escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString("\n    ")
		case r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
