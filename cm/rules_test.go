package cm_test

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

// Each rule of cgroups and of kills (sections 8.1 to 8.6, and 9) has a test that
// says its number, in the name of a case or in a comment, or a reason here why it has
// none. Those of the managers are in cm/managers, those of stats in cm/stats.
func TestEachRuleOfCgroupsIsNamedByATest(t *testing.T) {
	without := map[string]string{
		"cm-46": "processes stay where the machine's service manager has put them: doc.go says so",
	}
	var rules []string
	for kind, last := range map[string]int{"cm": 46, "oom": 3} {
		for n := 1; n <= last; n++ {
			rules = append(rules, fmt.Sprintf("%s-%d", kind, n))
		}
	}
	rules = append(rules, "F-55", "F-57", "F-60", "F-61", "F-70")

	named := map[string]bool{}
	word := regexp.MustCompile(`\b(?:cm|oom|F)-\d+\b`)
	for _, dir := range []string{".", "cgroups", "cgroups/host", "oom", "stats", "../runtime/cri", "../runtime/cri/podconfig", "../podworker", "../examples/agent"} {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*_test.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, file := range files {
			if strings.HasSuffix(file, "rules_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, rule := range word.FindAllString(string(text), -1) {
				named[rule] = true
			}
		}
	}
	for _, rule := range rules {
		if why, ok := without[rule]; ok {
			assert.False(t, named[rule], "a reason that holds no longer: %s, %s", rule, why)
		} else {
			assert.True(t, named[rule], "no test names %s", rule)
		}
	}
}
