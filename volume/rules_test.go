package volume_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/ruletest"
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
	var files []string
	for _, dir := range []string{".", "../runtime/cri", "../podworker", "../kube"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || path == "rules_test.go" || strings.Contains(path, "integration") || strings.Contains(path, "stress") {
				return err
			}
			files = append(files, path)
			return nil
		}))
	}
	ruletest.Check(t, ruletest.Named(t, files...), without,
		ruletest.Span{Kind: "vol", From: 1, To: 81},
		ruletest.Span{Kind: "F", From: 39, To: 49}, // what goes beyond them
	)
}
