package podconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each rule of this part of the behaviour has a case somewhere that says its
// number: a pod of testdata, or a test of this package or of one beside it.
func TestEachRuleHasACase(t *testing.T) {
	named := map[string]bool{}
	for _, gc := range goldenCases(t) {
		for _, rule := range gc.rules {
			named[rule] = true
		}
	}
	rule := regexp.MustCompile(`\b(rt|se|cm|pe)-\d+\b`)
	for _, pattern := range []string{"*_test.go", "../userns/*_test.go", "../*_test.go", "../plan/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, id := range rule.FindAllString(string(text), -1) {
				named[id] = true
			}
		}
	}
	check := func(kind string, from, to int) {
		for n := from; n <= to; n++ {
			id := fmt.Sprintf("%s-%d", kind, n)
			assert.True(t, named[id], "no case for %s", id)
		}
	}
	check("cm", 32, 42)
	check("se", 1, 11)
	check("se", 13, 20) // se-12 is the planner's: rt-39 and what follows
	check("rt", 14, 23)
	check("rt", 83, 84)
}
