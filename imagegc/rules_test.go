package imagegc_test

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

// Each rule of images has a test or a story that says its number.
func TestEachRuleOfImagesIsNamedByATest(t *testing.T) {
	tests, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	stories, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	named := map[string]bool{}
	for _, file := range append(tests, stories...) {
		if file == "rules_test.go" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, rule := range regexp.MustCompile(`\b(ig-\d+|F-\d\d|nq-\d+)\b`).FindAllString(string(text), -1) {
			named[rule] = true
		}
	}
	rules := strings.Fields("F-28 F-29 F-30 F-31 F-32 F-33 F-34 nq-8 nq-9")
	for n := 1; n <= 19; n++ {
		rules = append(rules, fmt.Sprintf("ig-%d", n))
	}
	for _, rule := range rules {
		assert.True(t, named[rule], "no test names %s", rule)
	}
}
