package statuspage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheLastLinesOfALog(t *testing.T) {
	line := func(text string) string { return "2026-11-21T12:00:00.000000000Z stdout F " + text + "\n" }
	assert.Empty(t, lastLines("", false))
	assert.Equal(t, []string{"2026-11-21T12:00:00Z one", "2026-11-21T12:00:00Z two words"}, lastLines(line("one")+line("two words"), false))
	assert.Equal(t, []string{"2026-11-21T12:00:00Z two"}, lastLines("t of a line\n"+line("two"), true), "a cut line is left out")
	assert.Empty(t, lastLines("cut and without end", true))
	assert.Equal(t, []string{"another format"}, lastLines("another format\n", false))
	many := lastLines(strings.Repeat(line("x"), 100), false)
	assert.Len(t, many, 20)
}
