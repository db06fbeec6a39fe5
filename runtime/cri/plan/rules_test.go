package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every rule of the planner has a case that names it.
func TestEveryRuleIsNamedByATest(t *testing.T) {
	elsewhere := map[string]string{
		"rt-27":  "the condition PodReadyToStartContainers is status's",
		"rt-139": "the condition AllContainersRestarting is status's",
		"rt-142": "so is what is said of the containers meanwhile",
	}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	named := make(map[string]bool)
	for _, file := range files {
		if file == "rules_test.go" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, rule := range rulesIn(string(text)) {
			named[rule] = true
		}
	}
	var rules []string
	for _, span := range []struct {
		kind      string
		from, end int
	}{{"rt", 26, 69}, {"rt", 88, 97}, {"rt", 138, 143}, {"al", 14, 15}, {"lq", 12, 13}, {"lq", 29, 29}} {
		for n := span.from; n <= span.end; n++ {
			rules = append(rules, fmt.Sprintf("%s-%d", span.kind, n))
		}
	}
	for _, rule := range rules {
		if elsewhere[rule] == "" {
			assert.True(t, named[rule], rule)
		}
	}
}

// rulesIn returns the rules that text names: "rt-26", and of "rt-26 … rt-28"
// only the ends.
func rulesIn(text string) (rules []string) {
	for i := 0; i+3 < len(text); i++ {
		if text[i+2] != '-' {
			continue
		}
		end := i + 3
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		if end > i+3 {
			rules = append(rules, text[i:end])
		}
	}
	return rules
}
