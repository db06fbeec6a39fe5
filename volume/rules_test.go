package volume_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each rule of how volumes are mounted has a test that says its number, in the
// name of a case or in a comment, here, in a plugin's package, or, where it is the
// runtime that acts on it, in runtime/cri; or else a reason here why it has none.
// Of a span, as "vol-36 … vol-38", only the ends are said. A test that needs a real
// runtime does not count.
func TestEachRuleOfVolumesIsNamedByATest(t *testing.T) {
	without := map[string]string{
		"vol-4":  "who calls Mount says that the pod is wanted; podworker syncs none that is terminating",
		"vol-31": "that no container starts before its volumes is podworker.Pipeline's order, which its tests hold",
		"vol-78": "no quotas are set for monitoring: du measures",
	}
	named := map[string][]string{}
	pattern := regexp.MustCompile(`\b(vol|F)-\d+\b`)
	for _, dir := range []string{".", "../runtime/cri", "../podworker", "../kube"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || path == "rules_test.go" || strings.Contains(path, "integration") || strings.Contains(path, "stress") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, rule := range pattern.FindAllString(string(text), -1) {
				if !slices.Contains(named[rule], path) {
					named[rule] = append(named[rule], path)
				}
			}
			return err
		}))
	}
	check := func(kind string, from, to int) {
		for n := from; n <= to; n++ {
			rule := fmt.Sprintf("%s-%d", kind, n)
			switch why, ok := without[rule]; {
			case ok && named[rule] != nil:
				assert.Fail(t, "a reason that holds no longer", "%s (%s) is named by %s", rule, why, named[rule])
			case !ok:
				assert.NotNil(t, named[rule], "no test names %s", rule)
			}
		}
	}
	check("vol", 1, 81)
	check("F", 39, 49) // what goes beyond them
}
