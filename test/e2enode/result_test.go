package e2enode

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/test/internal/ginkgo"
)

func TestEvaluate(t *testing.T) {
	results, err := evaluate([]ginkgo.Spec{
		{Node: "SynchronizedBeforeSuite", State: "passed"},
		{Name: "a", Node: "It", State: "passed", Took: time.Second},
		{Name: "b", Node: "It", State: "skipped", Why: "no swap"},
		{Name: "c", Node: "It", State: "skipped"},
		{Name: "d", Node: "It", State: "pending"},
		{Name: "e", Node: "It", State: "interrupted", Why: "the suite timed out"},
		{Name: "f", Node: "It", State: "failed", Why: "the pod did not start"},
		{Name: "g", Node: "It", State: "panicked"},
		{Name: "h", Node: "It", State: "timedout", Why: suiteTimeout},
		{Name: "i", Node: "It", State: "skipped", Why: earlierFailed},
		{Node: "SynchronizedAfterSuite", State: "failed"},
	})
	require.NoError(t, err)
	assert.Equal(t, []result{
		{name: "a", is: passed, took: time.Second},
		{name: "b", is: skipped, why: "no swap"},
		{name: "c", is: notRun},
		{name: "d", is: notRun},
		{name: "e", is: notRun},
		{name: "f", is: failed, why: "the pod did not start"},
		{name: "g", is: failed, why: "panicked"},
		{name: "h", is: notRun},
		{name: "i", is: skipped, why: earlierFailed},
	}, results)
	assert.Equal(t, []string{"f", "g", "i"}, inconclusive(results))

	_, err = evaluate([]ginkgo.Spec{{Node: "SynchronizedBeforeSuite", State: "failed", Why: "no kubelet"}})
	assert.EqualError(t, err, "SynchronizedBeforeSuite: no kubelet")
}

func TestTheTestsOfASmallContainerAreRunAgainTogether(t *testing.T) {
	results := []result{
		{name: "a", is: passed, container: "x"}, {name: "b", is: failed, container: "x"}, {name: "not selected", is: notRun, container: "x"},
		{name: "c", is: passed, container: "y"},
	}
	for i := range maxTogether + 1 {
		results = append(results, result{name: string(rune('1' + i)), is: passed, container: "large"})
	}
	results[len(results)-1].is = failed
	assert.Equal(t, []string{"a", "b", "7"}, inconclusive(results))
}

func TestOnlyInconclusiveTestsAreReplacedByTheSecondRun(t *testing.T) {
	first := []result{{name: "a", is: passed}, {name: "b", is: failed, why: "x"}, {name: "c", is: failed, why: "y"}, {name: "d", is: failed, why: "z"}}
	second := []result{{name: "a", is: failed}, {name: "b", is: passed}, {name: "c", is: failed, why: "w"}, {name: "d", is: notRun}}
	want := []result{{name: "a", is: passed}, {name: "b", is: passed, again: true}, {name: "c", is: failed, why: "w", again: true}, {name: "d", is: failed, why: "z"}}
	assert.Equal(t, want, retried(first, second))
	assert.Equal(t, "x", first[1].why, "the argument must not change")
}

func TestExactlySelectsOnlyTheNamedTests(t *testing.T) {
	pattern := regexp.MustCompile(exactly([]string{"[sig-node] Pods run (1)", "[sig-node] Probes"}))
	assert.True(t, pattern.MatchString("E2eNode Suite [sig-node] Pods run (1)"))
	assert.True(t, pattern.MatchString("E2eNode Suite [sig-node] Probes"))
	assert.False(t, pattern.MatchString("E2eNode Suite [sig-node] Probes fail"))
	assert.False(t, pattern.MatchString("E2eNode Suite x[sig-node] Probes"))
}

func TestResultsAreKeptUntilTheTestIsRunAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.tsv")
	h, err := readResults(file)
	require.NoError(t, err)
	assert.Empty(t, h.tests)
	h.latest = "Monday"
	h.tests.merge(kubelet, []result{{name: "b", is: passed, took: 2 * time.Second}, {name: "a", is: notRun}})
	h.tests.merge(agent, []result{{name: "b", is: failed, why: "a\tb\nc", again: true}, {name: "a", is: skipped, why: "no"}})
	require.NoError(t, h.write(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "# Monday\n-\t0\t\tskipped\t0\tno\ta\npassed\t2\t\tFAILED*\t0\ta b c\tb\n", string(text))

	h, err = readResults(file)
	require.NoError(t, err)
	h.tests.merge(agent, []result{{name: "a", is: passed}, {name: "b", is: notRun}})
	assert.Equal(t, history{"Monday", results{
		"a": {agent: {name: "a", is: passed}},
		"b": {kubelet: {name: "b", is: passed, took: 2 * time.Second}, agent: {name: "b", is: failed, why: "a b c", again: true}},
	}}, h)

	require.NoError(t, os.WriteFile(file, []byte("# Monday\npassed\tb\n"), 0o644))
	_, err = readResults(file)
	assert.ErrorContains(t, err, "2 fields")
	require.NoError(t, os.WriteFile(file, []byte("passed\tb\n"), 0o644))
	_, err = readResults(file)
	assert.ErrorContains(t, err, "the first line")
}
