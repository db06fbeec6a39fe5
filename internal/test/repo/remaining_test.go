package repo_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// remaining has the counts of findings that are permitted until they are fixed: a check, a
// directory and a count on each line.
const remaining = "internal/test/repo/testdata/remaining.txt"

// checkRemaining fails t where the findings of a check in a directory are not as many as
// permitted. With -update counts are lowered, never raised.
func checkRemaining(t *testing.T, check string, found map[string][]string) {
	t.Helper()
	text, err := fs.ReadFile(files, remaining)
	require.NoError(t, err)
	permitted := map[string]int{}
	var others []string
	for line := range strings.Lines(string(text)) {
		var name, where string
		var n int
		if _, err := fmt.Sscan(line, &name, &where, &n); err != nil || name != check {
			others = append(others, line)
			continue
		}
		permitted[where] = n
	}
	for where, lines := range found {
		if len(lines) > permitted[where] {
			t.Errorf("%s: %d findings in %s, of which %d are permitted:\n%s", check, len(lines), where, permitted[where], strings.Join(lines, "\n"))
		}
	}
	for _, where := range slices.Sorted(maps.Keys(permitted)) {
		is := len(found[where])
		if is < permitted[where] && !*update {
			t.Errorf("%s: %s permits %d findings in %s, which has %d: go test ./internal/test/repo -update lowers it", check, remaining, permitted[where], where, is)
		}
		if n := min(is, permitted[where]); n > 0 {
			others = append(others, fmt.Sprintf("%s %s %d\n", check, where, n))
		}
	}
	if *update {
		slices.Sort(others)
		require.NoError(t, os.WriteFile(filepath.Join(root, remaining), []byte(strings.Join(others, "")), 0o644))
	}
}
