package cri_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri"
)

// Of a removed pod's directory, only the entries that this package makes are
// removed, and the directory itself if it is empty then: without a volume manager
// no directory is left, and the entries of others are not touched.
func TestOnlyOwnFilesOfAPodsDirectoryAreRemoved(t *testing.T) {
	for name, tc := range map[string]struct{ files, left []string }{
		"only ours": {
			files: []string{"etc-hosts", "runtime.json", "runtime.json.tmp", "containers/web/00000000", "containers/web/00000001", "containers/log/0000ffff"},
		},
		"a kubelet's message": {files: []string{"containers/web/5a1b2c3d"}},
		"empty":               {},
		"volumes": {
			files: []string{"etc-hosts", "volumes/kubernetes.io~empty-dir/data/file", "containers/web/00000000"},
			left:  []string{"volumes/kubernetes.io~empty-dir/data/file"},
		},
		"unknown files": {
			files: []string{"containers/file", "containers/web/deep/00000000", "else", "userns", "plugins/p/data"},
			left:  []string{"else", "userns", "plugins/p/data"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			dir := t.TempDir()
			rt, err := cri.New(cri.Config{Name: "fake", Runtime: f, Images: f, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}})
			require.NoError(t, err)
			pod := filepath.Join(dir, "root", "pods", "u-1")
			require.NoError(t, os.MkdirAll(pod, 0o750))
			for _, file := range tc.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(pod, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(pod, file), nil, 0o600))
			}
			require.NoError(t, rt.CollectGarbage(t.Context(), removed("u-1")))
			var left []string
			for _, file := range tc.files {
				if _, err := os.Lstat(filepath.Join(pod, file)); err == nil {
					left = append(left, file)
				}
			}
			assert.Equal(t, tc.left, left)
			if tc.left == nil {
				assert.NoDirExists(t, pod)
			}
		})
	}
}
