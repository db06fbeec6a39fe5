package ruletest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

func TestWhatHasTheFormOfARule(t *testing.T) {
	assert.Equal(t, []string{"abc-1", "X-07", "rt_9-9"}, ruletest.In("abc-1, X-07; x-y-, -3, a-1b (rt_9-9)"))
	assert.Empty(t, ruletest.In(""))
}

// said keeps what a test would have failed with.
type said struct {
	testing.TB
	errors []string
}

func (*said) Helper() {}

func (s *said) Errorf(format string, args ...any) {
	s.errors = append(s.errors, fmt.Sprintf(format, args...))
}

func TestARuleHasATestOrAReason(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_test.go"), []byte("// abc-1, abc-2"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules_test.go"), []byte("abc-4"), 0o600))
	named := ruletest.Named(t, ruletest.Files(t, filepath.Join(dir, "*_test.go"))...)
	s := &said{TB: t}
	ruletest.Check(s, named, map[string]string{"abc-2": "nobody has it", "abc-3": "nor this"}, ruletest.Span{Kind: "abc", From: 1, To: 4})
	assert.Equal(t, []string{
		"a reason that holds no longer: abc-2 (nobody has it) is named by [" + filepath.Join(dir, "a_test.go") + "]",
		"no test names abc-4",
	}, s.errors)
}
