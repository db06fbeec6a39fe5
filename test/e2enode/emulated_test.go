package e2enode

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

func TestTheResultsInTheRepositoryCanBeRead(t *testing.T) {
	assert.NotPanics(t, func() { emulated() })
	for _, r := range append(notEmulated(), reasons.Parse(emulatedDifferences)...) {
		assert.NotEmpty(t, r.Why, r.Text)
	}
}

func TestARunIsAddedToEarlierOnes(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("test/e2enode", 0o755))
	require.NoError(t, os.MkdirAll("docs", 0o755))
	pass, fail := result{is: passed}, result{is: failed, why: "no"}
	earlier := history{"Monday", results{"swap [Feature:NodeSwap]": {kubelet: pass}, "other": {kubelet: pass, agent: fail}}}
	require.NoError(t, earlier.write(emulatedFile))
	run := history{"Tuesday", results{"swap [Feature:NodeSwap]": {agent: pass}, "other": {agent: pass}, "not run": {}}}
	file := filepath.Join(t.TempDir(), "results.tsv")
	require.NoError(t, run.write(file))

	assert.Equal(t, 0, merge(file, nil, io.Discard))
	all, err := readResults(emulatedFile)
	require.NoError(t, err)
	assert.Equal(t, "Tuesday", all.latest)
	assert.Len(t, all.tests, 2, "tests that were not run are not in the file")
	assert.Equal(t, passed, all.tests["other"][agent].is)
	report, err := os.ReadFile(emulatedReport)
	require.NoError(t, err)
	assert.Contains(t, string(report), "| run with both | 2 |\n| of these, not measurable on the other machine | 1 |\n")
	assert.Contains(t, string(report), "| Feature:NodeSwap | 1 | 1 | 1 |\n")

	// A difference without a reason is an error.
	run.tests["other"] = map[subject]result{agent: fail}
	require.NoError(t, run.write(file))
	var out strings.Builder
	assert.Equal(t, 1, merge(file, nil, &out))
	assert.Contains(t, out.String(), "unexplained: other\n    FAILED: no\n")
	assert.Equal(t, 0, merge(file, []reasons.Reason{{Text: "other", Why: "It is the agent's own decision."}}, io.Discard))
}

func TestWhatIsLeftOutHasAReason(t *testing.T) {
	both := func(k, a state) map[subject]result { return map[subject]result{kubelet: {is: k}, agent: {is: a}} }
	h := history{tests: results{
		"swap a [Feature:NodeSwap]": both(passed, failed), "swap b [Feature:NodeSwap]": both(skipped, notRun), "swap c [Feature:NodeSwap]": both(passed, notRun),
	}}
	names := append(h.names(), "swap d [Feature:NodeSwap]", "speed [Benchmark]", "Pods run")
	assert.Equal(t, []excluded{{"Not run for time.", 2}, {"Slow.", 1}, {"The test skips itself there with the kubelet.", 1}},
		leftOut(names, h, []reasons.Reason{{Text: "[Feature:NodeSwap]"}, {Text: "[Benchmark]"}}, []reasons.Reason{{Text: "[Benchmark]", Why: "Slow."}}))
}

func TestTestsOfTheEmulatedMachineAreSelected(t *testing.T) {
	names := []string{"swap [Feature:NodeSwap]", "huge [Feature:HugePages]", "Pods run"}
	earlier := results{"huge [Feature:HugePages]": {kubelet: {is: passed}}}
	of := func(missing, unmeasurable bool) []string {
		o := options{focus: regexp.MustCompile("."), missing: missing, unmeasurable: unmeasurable}
		return o.selectEmulated(kubelet, slices.Clone(names), earlier)
	}
	assert.ElementsMatch(t, names, of(false, false))
	assert.Equal(t, []string{"huge [Feature:HugePages]", "swap [Feature:NodeSwap]"}, of(false, true))
	assert.Equal(t, []string{"swap [Feature:NodeSwap]"}, of(true, true))
	_, err := parseFlags([]string{"--unmeasurable", "--subjects="}, io.Discard)
	assert.EqualError(t, err, "--unmeasurable requires --emulated")
}

func TestOtherTestsRunInTheEmulatedMachine(t *testing.T) {
	assert.NotNil(t, reasons.Find(options{}.excluded(), "swap [Feature:NodeSwap]"))
	assert.Nil(t, reasons.Find(options{emulated: "10.0.2.2:5000"}.excluded(), "swap [Feature:NodeSwap]"))
	assert.NotContains(t, (&world{}).directories(options{emulated: "10.0.2.2:5000"}), "/run")
	assert.Contains(t, (&world{}).directories(options{}), "/run")
}
