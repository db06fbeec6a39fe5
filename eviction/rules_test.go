package eviction_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each rule of evictions has a test or a story that says its number, or there is a
// reason here why it has none. Of a span, as "ev-1 … ev-10", all are said.
func TestEachRuleOfEvictionsIsNamedByATest(t *testing.T) {
	without := map[string]string{
		"ev-12": "not there: a split file system needs no feature gate",
		"ev-13": "package cm/stats reads /proc; the story pids has what comes of it",
		"ev-36": "package imagegc, which the agent gives as Config.Reclaim.Images",
		"ev-56": "package podworker: KillAndWait has the deadline and the event ExceededGracePeriod (pw-60); nq-7 is a story",
		"ev-60": "package admission: TestVictimsAreFewAndTheLeastGuaranteed",
		"ev-61": "package admission: TestTheNearestGoesByWhatIsStillMissing",
		"ev-62": "packages podworker and status: TestACriticalPodRunsWhenTheOthersHaveGivenWay, TestADisruptionIsSaidOnceAndStays",
		"ev-63": "not there: conditions by PSI are alpha",
		"F-25":  "not there: quotas are package volume's to read",
	}
	named := map[string]bool{}
	span := regexp.MustCompile(`\bev-(\d+) … ev-(\d+)\b`)
	one := regexp.MustCompile(`\b(ev-\d+|F-\d\d|nq-\d+)\b`)
	tests, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	more, err := filepath.Glob("*/*_test.go")
	require.NoError(t, err)
	stories, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(stories), 25)
	for _, file := range append(append(tests, more...), stories...) {
		if file == "rules_test.go" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range span.FindAllStringSubmatch(string(text), -1) {
			var from, to int
			_, _ = fmt.Sscan(m[1], &from)
			_, _ = fmt.Sscan(m[2], &to)
			for n := from; n <= to; n++ {
				named[fmt.Sprintf("ev-%d", n)] = true
			}
		}
		for _, rule := range one.FindAllString(string(text), -1) {
			named[rule] = true
		}
	}
	var rules []string
	for n := 1; n <= 63; n++ {
		rules = append(rules, fmt.Sprintf("ev-%d", n))
	}
	for n := 14; n <= 27; n++ {
		rules = append(rules, fmt.Sprintf("F-%02d", n))
	}
	rules = append(rules, "nq-4", "nq-5", "nq-6", "nq-7")
	for _, rule := range rules {
		switch why, ok := without[rule]; {
		case ok && named[rule] && !strings.HasPrefix(why, "package"):
			assert.Fail(t, "a reason that holds no longer", "%s (%s)", rule, why)
		case !ok:
			assert.True(t, named[rule], "no test names %s", rule)
		}
	}
}
