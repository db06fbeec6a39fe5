package podconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The list is written by tools/kubernetes/facts from the source of Kubernetes.
func TestTheSafeSysctlsAreThoseOfTheKubelet(t *testing.T) { // se-14
	text, err := os.ReadFile(filepath.Join("testdata", "kubelet-sysctls.txt"))
	require.NoError(t, err)
	theirs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] != "#" {
			theirs[fields[0]] = strings.Join(fields[1:], "")
		}
	}
	assert.Equal(t, theirs, safeSysctls)
}
