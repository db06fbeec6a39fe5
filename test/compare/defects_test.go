//go:build unix

package compare

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the section of docs/differences.md about defects of the kubelet")

func TestDefectsAreParsed(t *testing.T) {
	defects, err := parseDefects("issue: 1, 22\nkubelet: It fails.\nkubeparts: It does not.\n\nissue: none\nkubelet: a|b\nkubeparts: c\n")
	require.NoError(t, err)
	assert.Equal(t, []defect{{[]int{1, 22}, "It fails.", "It does not."}, {nil, "a|b", "c"}}, defects)
	text := defectsSection(defects)
	assert.Contains(t, text, "| [#1](https://github.com/kubernetes/kubernetes/issues/1), [#22](https://github.com/kubernetes/kubernetes/issues/22) | It fails. | It does not. |\n")
	assert.Contains(t, text, "|  | a\\|b | c |\n")

	for text, want := range map[string]string{
		"issue: 1\nkubelet: a\n": "defects.txt:1: a block has 3 lines, not 2",
		"issue: 1\nkubelet: a\nkubeparts: b\n\nissue: 1\nkubeparts: b\nkubelet: a\n": `defects.txt:6: line must begin with "kubelet: "`,
		"issue: #1\nkubelet: a\nkubeparts: b\n":                                      "defects.txt:1: strconv.Atoi",
	} {
		_, err := parseDefects(text)
		assert.ErrorContains(t, err, want)
	}
}

// The report is written with a kubelet, but this section needs none.
func TestTheReportHasTheDefects(t *testing.T) {
	defects, err := parseDefects(defectsText)
	require.NoError(t, err)
	path := filepath.Join("..", "..", "docs", "differences.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(text), "\n"+defectsHeading)
	want := strings.TrimRight(before, "\n") + "\n\n" + defectsSection(defects)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(text), "go test ./test/compare -run TestTheReportHasTheDefects -update writes it")
}
