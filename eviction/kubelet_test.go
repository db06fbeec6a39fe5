package eviction_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/eviction"
)

// The list is written by tools/kubernetes/facts from the source of Kubernetes.
func TestTheDefaultThresholdsAreThoseOfTheKubelet(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "kubelet", "thresholds.txt"))
	require.NoError(t, err)
	theirs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] != "#" {
			theirs[fields[0]] = fields[1]
		}
	}
	assert.Equal(t, theirs, eviction.Settings{}.WithDefaults("linux", false).Hard)
}
