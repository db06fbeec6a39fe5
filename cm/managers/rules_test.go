package managers_test

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

// Each rule of the managers (sections 8.7 to 8.10) has a test that says its number,
// in the name of a case or in a comment, or else a reason here why it has none.
func TestEachRuleOfTheManagersIsNamedByATest(t *testing.T) {
	rules := map[string]int{"cpu": 10, "mem": 4, "top": 7, "dev": 13, "pr": 2, "dra": 4, "plg": 1}
	more := []string{"F-51", "F-52", "F-53", "F-58", "F-59"}
	without := map[string]string{
		"dra-1": "resource claims are refused: see TestRefusals",
		"dra-2": "as dra-1",
		"dra-3": "as dra-1",
		"dra-4": "as dra-1",
		"plg-1": "device plugins register at their socket; the watcher of plugins_registry is not here",
	}
	for kind, last := range rules {
		for n := 1; n <= last; n++ {
			more = append(more, fmt.Sprintf("%s-%d", kind, n))
		}
	}
	named := map[string]string{}
	word := regexp.MustCompile(`\b(?:cpu|mem|top|dev|pr|plg|F)-\d+`)
	for _, dir := range []string{"cpu", "memory", "topology", "device", "podresources", "managers"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "rules_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, rule := range word.FindAllString(string(text), -1) {
				named[rule] = file
			}
		}
	}
	for _, rule := range more {
		if why, ok := without[rule]; ok {
			assert.Empty(t, named[rule], "a reason that holds no longer: %s, %s", rule, why)
		} else {
			assert.NotEmpty(t, named[rule], "no test names %s", rule)
		}
	}
}
