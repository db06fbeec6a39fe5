//go:build unix

package compare

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/docs"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

func TestDifferencesAreExplained(t *testing.T) {
	reasons, err := parseReasons("# It is a choice.\n^a b: kubelet\n^c\n\n# Sometimes: it depends on time.\n^d\n# There is no such difference.\n^e\n")
	require.NoError(t, err)
	all := []difference{{"a", "b", "1", "2"}, {"c", "", "1", "2"}, {"z", "", "1", "2"}}
	r := explain(all, reasons)
	assert.Equal(t, 3, r.count())
	assert.Equal(t, all[2:], r.unexplained)
	require.Len(t, r.unused, 1)
	assert.Equal(t, "There is no such difference.", r.unused[0].why)
	assert.Equal(t, []group{{"It is a choice.", all[:2]}, {"it depends on time.", nil}, {"There is no such difference.", nil}}, r.byReason())

	var b strings.Builder
	r.print(&b, true)
	assert.Equal(t, "It is a choice.\n    a b: kubelet 1, agent 2\n    c: kubelet 1, agent 2\nunexplained:\n    z: kubelet 1, agent 2\n", b.String())
}

func TestReasonsAreChecked(t *testing.T) {
	_, err := parseReasons("^a\n")
	assert.EqualError(t, err, "reasons.txt:1: no reason precedes the pattern")
	_, err = parseReasons("# why\n(\n")
	assert.ErrorContains(t, err, "reasons.txt:2")
}

// The report in the repository has the reasons of reasons.txt, so that a change of one
// without a run of the other is noticed, and no difference without a reason.
func TestTheReportHasTheReasons(t *testing.T) {
	reasons, err := parseReasons(reasonsText)
	require.NoError(t, err)
	text, err := docs.Files.ReadFile("differences.md")
	require.NoError(t, err)
	for _, r := range reasons {
		assert.Contains(t, string(text), markdown.Cell(r.why), "run bash .ci/run compare")
	}
	assert.NotContains(t, string(text), withoutReason, "mend the difference, or give its reason")
}

func TestReport(t *testing.T) {
	s := run("uid-1", "sandbox-1", "container-1", "/tmp/a")
	s.Version, s.Containerd = "v1.37.2", "2.4.2"
	reasons, err := parseReasons("# It is a choice.\n^a\n# Sometimes: It depends on time.\n^c\n")
	require.NoError(t, err)
	long := strings.Repeat("x", 200)
	r := report{explain([]difference{{"a", "b", long, "|"}, {"z", "", "<uid>", "2"}}, reasons), time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), s, s, 7, nil}
	text := r.markdown()
	assert.Contains(t, text, "on 2026-11-23. ")
	assert.True(t, strings.HasSuffix(text, defectsSection(nil)))
	assert.Contains(t, text, "| pods | 1, of which 1 as manifests and 0 from the API server |")
	assert.Contains(t, text, "| differences | 2, by 2 reasons |")
	assert.Contains(t, text, "| 1 | It is a choice. | a b: kubelet "+long[:maxShown]+"…, agent \\| |\n| 0 | It depends on time. | in other runs |\n")
	assert.Contains(t, text, withoutReason+"\n\n- z: kubelet &lt;uid>, agent 2\n")
}
