package virtualkubelet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxLines is the limit of an example, in lines of code without tests, comments and blank lines.
const maxLines = 120

func TestTheExamplesAreShort(t *testing.T) {
	dirs, err := filepath.Glob("examples/*")
	require.NoError(t, err)
	require.Len(t, dirs, 2)
	for _, dir := range dirs {
		files, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		lines := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
					lines++
				}
			}
		}
		t.Logf("%s: %d lines", dir, lines)
		assert.Less(t, lines, maxLines, dir)
	}
}
