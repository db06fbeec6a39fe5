package podsource_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podsource"
)

// src-21: where ConfigMaps and Secrets come from files as well, pods may refer to
// them; to what only an API server has they may not.
func TestManifestsMayReferToLocalObjects(t *testing.T) {
	const manifest = `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  volumes:
  - {name: c, configMap: {name: c}}
  - {name: d, csi: {driver: d.example.com}}
  - {name: s, projected: {sources: [{secret: {name: s}}]}}
  containers:
  - {name: c, image: i, envFrom: [{secretRef: {name: s}}]}
`
	for name, c := range map[string]struct {
		allow bool
		more  string
		pods  int
	}{
		"not by default": {false, "", 0},
		"if allowed":     {true, "", 1},
		"not all":        {true, "  serviceAccountName: x\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.yaml")
			require.NoError(t, os.WriteFile(path, []byte(manifest+c.more), 0o600))
			synctest.Test(t, func(t *testing.T) {
				files, err := podsource.NewFile(podsource.FileConfig{Path: path, NodeName: "n", LocalObjects: c.allow, Settle: -1})
				require.NoError(t, err)
				pods, _ := files.Read()
				assert.Len(t, pods, c.pods)
			})
		})
	}
}
