package virtualkubelet_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The documentation shows the lines of go.mod and go.work with which the tests are built.
func TestTheDocumentedLinesAreThoseOfTheModule(t *testing.T) {
	text := func(file string) string {
		out, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(out)
	}
	lines := regexp.MustCompile(`(?m)^//\t(replace .*|\S+ v\d\S*)$`).FindAllStringSubmatch(text("doc.go"), -1)
	require.Len(t, lines, 3)
	for _, line := range lines {
		if replacement, ok := strings.CutPrefix(line[1], "replace "); ok {
			assert.Contains(t, text("go.work"), replacement)
			continue
		}
		assert.Regexp(t, `(?m)^\t`+regexp.QuoteMeta(line[1])+`( // indirect)?$`, text("go.mod"))
	}
}
